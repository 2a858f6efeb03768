//! What users bring: Tower's layers, whose errors become errors of calls, schedules and strategies.

use std::time::Duration;

use callward::retry::{MakeSchedule, RetryConfig, Schedule, Step};
use callward::router::{Candidates, Strategy};
use callward::{Delivery, ErrorKind, Server, Stack, ToolError};
use callward_testkit::{MockServer, MockService, call, tool};
use serde_json::json;
use tokio::time::Instant;
use tower::load_shed::error::Overloaded;
use tower::{ServiceBuilder, ServiceExt};

use crate::bed::{alone, failing, fails, in_set, read, recorded};

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
    for (error, kind, delivery) in [
        (
            ask().await.unwrap_err(),
            ErrorKind::Timeout,
            Delivery::Unknown,
        ),
        (
            callward::tool_error(Box::new(Overloaded::new())),
            ErrorKind::Overloaded,
            Delivery::NotSent,
        ),
        (
            callward::tool_error("broken".into()),
            ErrorKind::ServerFault,
            Delivery::Unknown,
        ),
    ] {
        assert_eq!((error.kind(), error.delivery()), (kind, delivery));
    }
}

/// Reads from a server that fails each time; says how often it was asked and how long that took.
async fn paused_by(schedule: impl MakeSchedule) -> (usize, u64) {
    let mock = failing(usize::MAX, ErrorKind::RateLimited, Delivery::Answered);
    let mut retry = RetryConfig::default();
    retry.max_attempts = 9;
    let builder = Stack::builder().retry(retry).schedule(schedule);
    let (stack, _) = alone(builder, vec![read("get_order")], &mock).await;
    let start = Instant::now();
    fails(&stack, "s.get_order").await;
    (mock.started(), start.elapsed().as_secs())
}

struct Two(Vec<Duration>);

impl Schedule for Two {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.0.pop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_ones_own_sets_the_pauses() {
    let two = || Two([5, 2].map(Duration::from_secs).to_vec());
    assert_eq!(paused_by(two).await, (3, 7));
}

#[cfg(feature = "backoff")]
#[tokio::test(start_paused = true)]
async fn so_does_one_of_the_backoff_crate() {
    use callward::backoff::backoff::exponential::ExponentialBackoffBuilder;
    use callward::backoff::{TokioClock, cloned};

    let mine = ExponentialBackoffBuilder::<TokioClock>::new()
        .with_initial_interval(Duration::from_secs(3))
        .with_randomization_factor(0.0)
        .with_multiplier(1.0)
        .with_max_elapsed_time(Some(Duration::from_secs(8)))
        .build();
    assert_eq!(paused_by(cloned(mine)).await, (3, 6));
}

/// Stays in a zone while a server there is fit.
#[derive(Debug)]
struct Near;

impl Strategy for Near {
    fn name(&self) -> &'static str {
        "near"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let near = |zone: Option<&str>| zone == Some("near");
        let (index, _) = candidates
            .iter()
            .max_by_key(|(_, s)| near(s.zone.as_deref()))?;
        Some(index)
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_of_ones_own_is_asked() {
    let servers =
        ["a", "b"].map(|id| MockServer::new(id, vec![read("get")], MockService::counting()));
    let zone = |id: &str, server: Server| server.zone(if id == "b" { "near" } else { "far" });
    let builder = Stack::builder().custom_strategy(Near);
    let stack = in_set(builder, &servers, zone).await;
    for n in 0..8 {
        let (_, record) = recorded(&stack, "set.get", json!({"n": n})).await;
        assert_eq!(record.facts().server.unwrap().0.as_str(), "b");
    }
}
