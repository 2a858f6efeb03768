//! Custom schedules.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_retry::{RetryConfig, RetryLayer, Schedule, Step};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_layer::Layer;

/// Pauses of one second, two seconds, and so on, up to a number.
struct Counted {
    left: u32,
    next: Duration,
}

impl Schedule for Counted {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        self.next += Duration::from_secs(1);
        Some(self.next)
    }
}

fn failing(retry_after: Option<Duration>) -> MockService {
    MockService::new(move |_, _| {
        let error = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "busy");
        std::future::ready(Err::<ToolOutput, _>(match retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }))
    })
}

fn layer(made: &Arc<AtomicU32>) -> RetryLayer {
    let made = made.clone();
    let config = RetryConfig::default()
        .with_max_attempts(9)
        .with_budget_reserve(100);
    RetryLayer::new(config).unwrap().with_schedule(move || {
        made.fetch_add(1, Ordering::SeqCst);
        Counted {
            left: 3,
            next: Duration::ZERO,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn each_call_has_a_schedule_of_its_own_and_ends_with_it() {
    let made = Arc::default();
    let layer = layer(&made);
    for _ in 0..2 {
        let (mock, start) = (failing(None), Instant::now());
        let read = call(&tool("get").read_only().build(), json!({}));
        let error = layer.layer(mock.clone()).oneshot(read).await.unwrap_err();
        assert_eq!(mock.started(), 4);
        assert_eq!(start.elapsed(), Duration::from_secs(1 + 2 + 3));
        assert!(error.message().contains("no further pause"), "{error}");
    }
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_for_is_a_floor_here_too() {
    let (mock, start) = (failing(Some(Duration::from_millis(2_500))), Instant::now());
    let read = call(&tool("get").read_only().build(), json!({}));
    layer(&Arc::default())
        .layer(mock)
        .oneshot(read)
        .await
        .unwrap_err();
    assert_eq!(
        start.elapsed(),
        Duration::from_millis(2_500 + 2_500 + 3_000)
    );
}

#[tokio::test(start_paused = true)]
async fn it_makes_no_call_retryable_and_costs_nothing_where_none_is_retried() {
    let made = Arc::default();
    let layer = layer(&made);
    let mock = failing(None);
    let write = call(&tool("pay").build(), json!({}));
    layer.layer(mock.clone()).oneshot(write).await.unwrap_err();
    let read = call(&tool("get").read_only().build(), json!({}));
    layer
        .layer(MockService::counting())
        .oneshot(read)
        .await
        .unwrap();
    assert_eq!((mock.started(), made.load(Ordering::SeqCst)), (1, 0));
}
