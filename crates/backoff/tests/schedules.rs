//! Any `Backoff` as the schedule of a retry layer.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use backoff::backoff::{Constant, Stop};
use backoff::exponential::ExponentialBackoffBuilder;
use callward_backoff::{Backoff, TokioClock, cloned, schedule};
use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_retry::{MakeSchedule, RetryConfig, RetryLayer};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_layer::Layer;

fn layer(schedule: impl MakeSchedule) -> RetryLayer {
    let config = RetryConfig::default()
        .with_max_attempts(9)
        .with_budget_reserve(100);
    RetryLayer::new(config).unwrap().with_schedule(schedule)
}

/// Makes a call that fails each time; says how many attempts there were and how long it took.
async fn fail(layer: &RetryLayer, name: &str) -> (usize, Duration) {
    let mock = MockService::new(|_, _| async {
        let kind = ErrorKind::ServerFault;
        Err::<ToolOutput, _>(ToolError::new(kind, Delivery::Answered, "busy"))
    });
    let tool = match name {
        "get" => tool(name).read_only().build(),
        _ => tool(name).build(),
    };
    let start = Instant::now();
    let service = layer.layer(mock.clone());
    service.oneshot(call(&tool, json!({}))).await.unwrap_err();
    (mock.started(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_pauses_are_those_of_the_schedule() {
    let constant = layer(schedule(|| Constant::new(Duration::from_secs(2))));
    assert_eq!(fail(&constant, "get").await, (9, Duration::from_secs(16)));
    assert_eq!(fail(&layer(schedule(|| Stop {})), "get").await.0, 1);
    assert_eq!(
        fail(&constant, "pay").await.0,
        1,
        "it makes nothing retryable"
    );
}

#[tokio::test(start_paused = true)]
async fn each_call_begins_its_own_from_the_start() {
    let mut used = ExponentialBackoffBuilder::<TokioClock>::new()
        .with_initial_interval(Duration::from_secs(1))
        .with_randomization_factor(0.0)
        .with_multiplier(2.0)
        .with_max_interval(Duration::from_secs(60))
        .with_max_elapsed_time(Some(Duration::from_secs(10)))
        .build();
    used.next_backoff();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let layer = layer(cloned(used));
    for _ in 0..2 {
        // 1 s, 2 s, 4 s: the next one would end after ten seconds
        assert_eq!(fail(&layer, "get").await, (4, Duration::from_secs(7)));
    }
}
