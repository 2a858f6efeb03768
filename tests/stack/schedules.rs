//! Pauses from a custom schedule, in the whole stack.
#![expect(clippy::expect_used, reason = "a failing helper fails the test")]

use std::time::Duration;

use callward::retry::{MakeSchedule, RetryConfig, Schedule, Step};
use callward::{Delivery, ErrorKind, Server, Stack, ToolError};
use callward_testkit::{MockServer, MockService};
use tokio::time::Instant;

/// Reads from a server that fails each time; says how often it was asked and how long that took.
async fn read(schedule: impl MakeSchedule) -> (usize, Duration) {
    let mock = MockService::new(|_, _| async {
        let kind = ErrorKind::RateLimited;
        Err(ToolError::new(kind, Delivery::Answered, "slow down"))
    });
    let tool = serde_json::json!({"name": "get_order", "annotations": {"readOnlyHint": true}});
    let server = MockServer::new("shop", vec![tool], mock.clone());
    let up = server.clone();
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        up.emit(&callward::core::ServerEvent::Up);
    });
    let stack = Stack::builder()
        .retry(RetryConfig::default().with_max_attempts(9))
        .schedule(schedule)
        .server(Server::shared(server))
        .build();
    let stack = stack.await.expect("settings that make sense");
    let start = Instant::now();
    let failed = stack.call("shop.get_order", serde_json::json!({})).await;
    assert!(failed.is_err());
    (mock.started(), start.elapsed())
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
    assert_eq!(read(two).await, (3, Duration::from_secs(7)));
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
    assert_eq!(read(cloned(mine)).await, (3, Duration::from_secs(6)));
}
