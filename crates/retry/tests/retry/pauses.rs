//! When a call is retried: schedule, stated times, deadline.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callward_core::trail::Verdict;
use callward_core::{CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_retry::{Backoff, Jitter, Retry, RetryConfig, RetryLayer, RetryPolicy};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

/// Fails every attempt with this error, and notes when each began.
fn failing(error: ToolError) -> (MockService, Arc<Mutex<Vec<Instant>>>) {
    let begins = Arc::new(Mutex::new(Vec::new()));
    let noted = begins.clone();
    let mock = MockService::new(move |_, _| {
        noted.lock().unwrap().push(Instant::now());
        let result: Result<ToolOutput, ToolError> = Err(error.clone());
        async { result }
    });
    (mock, begins)
}

fn fault() -> ToolError {
    ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "busy")
}

fn read() -> ToolCall {
    call(&tool("get_order").read_only().build(), json!({}))
}

/// Pauses are known: 100 ms, 200 ms, and so on.
fn plain() -> RetryConfig {
    RetryConfig::default().with_backoff(Backoff::new(Jitter::None, Duration::from_secs(10)))
}

fn retry(inner: MockService, config: RetryConfig) -> Retry<MockService> {
    Retry::new(inner, RetryPolicy::new(config).unwrap())
}

/// The pauses of one call that fails each time.
async fn pauses(policy: &RetryPolicy) -> Vec<Duration> {
    let (mock, begins) = failing(fault());
    let service = Retry::new(mock, policy.clone());
    service.oneshot(read()).await.unwrap_err();
    let begins = begins.lock().unwrap();
    begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_pause_is_the_plans_and_the_next_are_twice_the_one_before() {
    let policy = RetryPolicy::new(plain().with_max_attempts(4)).unwrap();
    let millis: Vec<_> = pauses(&policy)
        .await
        .iter()
        .map(Duration::as_millis)
        .collect();
    assert_eq!(millis, [100, 200, 400]);
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_layer_pause_differently() {
    let config = RetryConfig::default()
        .with_max_attempts(4)
        .with_budget_reserve(10)
        .with_seed(1);
    let policy = RetryPolicy::new(config).unwrap();
    assert_ne!(pauses(&policy).await, pauses(&policy).await);
}

#[tokio::test(start_paused = true)]
async fn a_seed_replays_the_pauses_exactly() {
    let config = RetryConfig::default()
        .with_max_attempts(4)
        .with_budget_reserve(10);
    let replay = async |seed| {
        let policy = RetryPolicy::new(config.with_seed(seed)).unwrap();
        [pauses(&policy).await, pauses(&policy).await]
    };
    assert_eq!(replay(7).await, replay(7).await);
    assert_ne!(replay(7).await, replay(8).await);
}

#[tokio::test(start_paused = true)]
async fn a_stated_time_is_waited_for_exactly() {
    let mock = MockService::sequence(vec![
        Err(fault().with_retry_after(Duration::from_secs(17))),
        Ok(ToolOutput::text("done")),
    ]);
    let start = Instant::now();
    // above the ceiling of 10 s, and with jitter: it is a floor
    let service = retry(mock, RetryConfig::default());
    service.oneshot(read()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(17));
}

#[tokio::test(start_paused = true)]
async fn a_stated_time_below_the_pause_shortens_nothing() {
    let mock = MockService::sequence(vec![
        Err(fault().with_retry_after(Duration::from_millis(30))),
        Ok(ToolOutput::text("done")),
    ]);
    let start = Instant::now();
    retry(mock, plain()).oneshot(read()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_stated_time_that_is_too_long_ends_the_call_at_once() {
    let (mock, _) = failing(fault().with_retry_after(Duration::from_secs(61)));
    let start = Instant::now();
    let service = retry(mock.clone(), RetryConfig::default());
    let error = service.oneshot(read()).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(mock.started(), 1);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(61)));
    let message = error.message();
    assert!(
        message.contains("61s") && message.contains("60s"),
        "{message}"
    );
}

fn open() -> ToolError {
    ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, "open")
        .with_retry_after(Duration::from_secs(30))
}

fn within(secs: u64) -> ToolCall {
    let deadline = Instant::now() + Duration::from_secs(secs);
    read().with_deadline(deadline.into_std())
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_is_asked_again_when_it_lets_a_call_through() {
    let mock = MockService::sequence(vec![Err(open()), Ok(ToolOutput::text("done"))]);
    let start = Instant::now();
    retry(mock, plain()).oneshot(within(60)).await.unwrap();
    // a little later: all who were refused know the same moment
    assert_eq!(start.elapsed(), Duration::from_millis(30_100));
}

#[tokio::test(start_paused = true)]
async fn the_record_has_the_real_time_of_a_wait() {
    for (back_after, waited) in [(Some(5_000), 5_100), (None, 30_100)] {
        let mock = MockService::sequence(vec![Err(open()), Ok(ToolOutput::text("done"))]);
        let layer = RetryLayer::new(plain()).unwrap();
        let record = Arc::new(CallRecord::new());
        let call = within(60).with_record(record.clone());
        let set = call.tool().set().clone();
        let back = async {
            if let Some(after) = back_after {
                tokio::time::sleep(Duration::from_millis(after)).await;
                assert!(record.decisions().0.is_empty());
                layer.server_is_back(&set);
            }
        };
        let (answer, ()) = tokio::join!(layer.layer(mock).oneshot(call), back);
        answer.unwrap();
        let waited = Duration::from_millis(waited);
        let (decisions, _) = record.decisions();
        assert_eq!(decisions[0].verdict, Verdict::Retry);
        assert_eq!(decisions[0].waited, Some(waited));
        assert_eq!(record.spent().pauses(), waited);
    }
    // a call that is given up waited until then
    let (mock, _) = failing(open());
    let record = Arc::new(CallRecord::new());
    let call = within(60).with_record(record.clone());
    let given_up = retry(mock, plain()).oneshot(call);
    let limit = Duration::from_secs(3);
    tokio::time::timeout(limit, given_up).await.unwrap_err();
    assert_eq!(record.spent().pauses(), limit);
    assert_eq!(record.decisions().0[0].waited, Some(limit));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_breaker_is_no_attempt_before_the_deadline() {
    let mock = MockService::new(|_, n| async move {
        match n {
            1..=7 => Err(open()),
            8 | 9 => Err(fault()),
            _ => Ok(ToolOutput::text("done")),
        }
    });
    let patient = plain().with_max_retry_after(Duration::from_secs(600));
    let output = retry(mock.clone(), patient).oneshot(within(600)).await;
    assert_eq!((mock.started(), output.is_ok()), (10, true));
}

#[tokio::test(start_paused = true)]
async fn all_waits_for_breakers_together_are_bounded() {
    let (mock, _) = failing(open());
    let start = Instant::now();
    let error = retry(mock.clone(), plain())
        .oneshot(within(600))
        .await
        .unwrap_err();
    // a second pause of 30 s would make it more than a minute
    assert_eq!(mock.started(), 2);
    assert_eq!(start.elapsed(), Duration::from_millis(30_100));
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert!(error.message().contains("waited for 30.1s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_breaker_open_beyond_the_deadline_ends_the_call_at_once() {
    for (call, message) in [
        (within(30), "30s away"),
        (read(), "30s, and it has no deadline"),
    ] {
        let (mock, _) = failing(open());
        let start = Instant::now();
        let error = retry(mock.clone(), plain())
            .oneshot(call)
            .await
            .unwrap_err();
        assert_eq!((mock.started(), start.elapsed()), (1, Duration::ZERO));
        assert_eq!(error.kind(), ErrorKind::BreakerOpen);
        assert!(error.message().contains(message), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_never_reaches_past_the_deadline() {
    let (mock, begins) = failing(fault());
    let start = Instant::now();
    // retries are due after 100 ms, 300 ms and 700 ms
    let deadline = start + Duration::from_millis(700);
    let service = retry(mock.clone(), plain().with_max_attempts(9));
    let call = read().with_deadline(deadline.into_std());
    let error = service.oneshot(call).await.unwrap_err();
    assert_eq!(mock.started(), 3);
    assert_eq!(start.elapsed(), Duration::from_millis(300));
    assert!(begins.lock().unwrap().iter().all(|begin| *begin < deadline));
    assert_eq!(error.kind(), ErrorKind::ServerFault);
    assert!(error.message().starts_with("busy; not retried"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stated_time_past_the_deadline_ends_the_call_at_once() {
    let (mock, _) = failing(fault().with_retry_after(Duration::from_secs(20)));
    let start = Instant::now();
    let call = read().with_deadline((start + Duration::from_secs(20)).into_std());
    let service = retry(mock.clone(), RetryConfig::default());
    service.oneshot(call).await.unwrap_err();
    assert_eq!((mock.started(), start.elapsed()), (1, Duration::ZERO));
}
