//! One deadline for all attempts, and pauses of a custom schedule, in the whole stack.

use std::time::Duration;

use callward::retry::{MakeSchedule, RetryConfig, Schedule, Step};
use callward::{Delivery, ErrorKind, Stack, ToolOutput};
use callward_testkit::MockService;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{alone, failing, fails, read};

const LIMIT: Duration = Duration::from_secs(10);

/// A server that says nothing to this many calls, and answers the next ones at once.
async fn silent(times: usize) -> (Stack, MockService) {
    let mock = MockService::new(move |_, n| async move {
        if n <= times {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::text("here"))
    });
    let builder = Stack::builder().call_deadline(LIMIT);
    let (stack, _) = alone(builder, vec![read("get_order")], &mock).await;
    (stack, mock)
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_uses_all_attempts_within_the_deadline() {
    let (stack, mock) = silent(1).await;
    let start = Instant::now();
    stack.call("s.get_order", json!({})).await.unwrap();
    assert_eq!(mock.started(), 2);
    assert!(start.elapsed() < LIMIT * 2 / 3, "{:?}", start.elapsed());

    let (stack, mock) = silent(usize::MAX).await;
    let start = Instant::now();
    let error = fails(&stack, "s.get_order").await;
    assert_eq!(start.elapsed(), LIMIT);
    assert_eq!(mock.started(), 3);
    let kinds: Vec<_> = error.history().iter().map(|attempt| attempt.kind).collect();
    use ErrorKind::{DeadlineExceeded, Timeout};
    assert_eq!(kinds, [Timeout, Timeout, DeadlineExceeded]);
}

/// Reads from a server that fails each time; says how often it was asked and how long that took.
async fn paused_by(schedule: impl MakeSchedule) -> (usize, Duration) {
    let mock = failing(usize::MAX, ErrorKind::RateLimited, Delivery::Answered);
    let retry = RetryConfig::default().with_max_attempts(9);
    let builder = Stack::builder().retry(retry).schedule(schedule);
    let (stack, _) = alone(builder, vec![read("get_order")], &mock).await;
    let start = Instant::now();
    fails(&stack, "s.get_order").await;
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
    assert_eq!(paused_by(two).await, (3, Duration::from_secs(7)));
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
    let expected = (3, Duration::from_secs(6));
    assert_eq!(paused_by(cloned(mine)).await, expected);
}
