//! What users bring: Tower's layers, whose errors become errors of calls, and schedules.

use std::time::Duration;

use callward::retry::{RetryConfig, Schedule, Step};
use callward::{Delivery, ErrorKind, Stack, ToolError};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::Instant;
use tower::load_shed::error::Overloaded;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::bed::{alone, failing, fails, read};

#[tokio::test(start_paused = true)]
async fn errors_of_tower_s_layers_are_errors_of_calls() {
    let refused = ToolError::new(ErrorKind::RateLimited, Delivery::NotSent, "later");
    let within = refused.clone();
    let server = MockService::new(move |_, n| {
        let refused = within.clone();
        async move {
            match n {
                1 => Err(refused),
                _ => std::future::pending().await,
            }
        }
    });
    let service = ServiceBuilder::new()
        .map_err(callward::tool_error)
        .buffer(4)
        .timeout(Duration::from_secs(5))
        .service(server);
    let ask = || {
        let get = tool("get").read_only().build();
        service.clone().oneshot(call(&get, json!({})))
    };
    let error = ask().await.unwrap_err();
    assert_eq!(error.to_string(), refused.to_string());
    let late = ask().await.unwrap_err();
    let [shed, broken] = [Box::new(Overloaded::new()) as BoxError, "broken".into()];
    let [shed, broken] = [shed, broken].map(callward::tool_error);
    for (error, kind, delivery) in [
        (late, ErrorKind::Timeout, Delivery::Unknown),
        (shed, ErrorKind::Overloaded, Delivery::NotSent),
        (broken, ErrorKind::ServerFault, Delivery::Unknown),
    ] {
        assert_eq!((error.kind, error.delivery), (kind, delivery));
    }
}

struct Two(Vec<Duration>);

impl Schedule for Two {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.0.pop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_ones_own_sets_the_pauses() {
    let mock = failing(usize::MAX, ErrorKind::RateLimited, Delivery::Answered);
    let mut retry = RetryConfig::default();
    retry.max_attempts = 9;
    let two = || Two([5, 2].map(Duration::from_secs).to_vec());
    let builder = Stack::builder().retry(retry).schedule(two);
    let (stack, _) = alone(builder, vec![read("get_order")], &mock).await;
    let start = Instant::now();
    fails(&stack, "s.get_order").await;
    assert_eq!((mock.started(), start.elapsed().as_secs()), (3, 7));
}
