//! One deadline for all attempts.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tollgate_core::{Delivery, ErrorKind, Tool, ToolCall, ToolError, ToolOutput};
use tollgate_retry::{Backoff, Jitter, RepeatPolicy, Retry, RetryConfig};
use tollgate_testkit::{MockService, call, tool};
use tower::ServiceExt;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Never answers, but ends each attempt when its share, or else the deadline, is over.
fn silent() -> MockService {
    MockService::new(|call, _| async move {
        let (share, deadline) = (call.attempt().until, call.deadline());
        let end = share.or(deadline).unwrap();
        sleep_until(end.into()).await;
        let kind = match share {
            Some(_) => ErrorKind::Timeout,
            None => ErrorKind::DeadlineExceeded,
        };
        Err::<ToolOutput, _>(ToolError::new(kind, Delivery::Unknown, "no answer"))
    })
}

fn failing(error: ToolError) -> MockService {
    MockService::new(move |_, _| std::future::ready(Err(error.clone())))
}

fn fault() -> ToolError {
    ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "busy")
}

fn read(estimated_ms: Option<f64>) -> Arc<Tool> {
    let tool = tool("get_order").read_only();
    tool.hint(|hints| hints.estimated_duration = estimated_ms)
        .build()
}

fn within(tool: &Arc<Tool>, limit: Duration) -> ToolCall {
    call(tool, json!({})).with_deadline((Instant::now() + limit).into_std())
}

fn retry(inner: MockService, attempts: u32) -> Retry<MockService> {
    let config = RetryConfig::default()
        .with_max_attempts(attempts)
        .with_budget_reserve(100)
        .with_backoff(Backoff::new(Jitter::None, Duration::from_secs(10)));
    Retry::new(inner, RepeatPolicy::new(config).unwrap())
}

/// How long each attempt was given, and how much of it was until the deadline.
fn given(mock: &MockService) -> Vec<Option<Duration>> {
    let seen = mock.seen();
    let of = |call: &ToolCall| Some(call.deadline()? - call.attempt().until?);
    seen.iter().map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_leaves_time_for_every_attempt() {
    let (mock, start) = (silent(), Instant::now());
    let call = within(&read(Some(400.0)), ms(9_200));
    let error = retry(mock.clone(), 3).oneshot(call).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(mock.started(), 3);
    // (9.2 s - 0.2 s) / 3 from the beginning; (6 s - 0.4 s) / 2 after the first pause; then all
    let ends = [Some(ms(9_200 - 3_000)), Some(ms(6_000 - 2_800)), None];
    assert_eq!(given(&mock), ends);
    assert_eq!(start.elapsed(), ms(9_200), "none of it is left unused");
}

#[tokio::test(start_paused = true)]
async fn what_one_attempt_does_not_need_goes_to_the_next() {
    let mock = failing(fault());
    retry(mock.clone(), 2)
        .oneshot(within(&read(None), ms(5_000)))
        .await
        .unwrap_err();
    let ends: Vec<_> = mock
        .seen()
        .iter()
        .map(|call| call.attempt().until)
        .collect();
    assert!(ends[0].is_some());
    assert_eq!(ends[1], None, "the last has all that is left");
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_or_a_second_attempt_nothing_is_shared_out() {
    let unsafe_tool = tool("pay").build();
    let cases = [
        (call(&read(None), json!({})), 3),
        (within(&read(None), ms(5_000)), 1),
        (within(&unsafe_tool, ms(5_000)), 3),
    ];
    for (call, attempts) in cases {
        let mock = failing(fault());
        retry(mock.clone(), attempts)
            .oneshot(call)
            .await
            .unwrap_err();
        assert!(
            given(&mock).iter().all(Option::is_none),
            "{:?}",
            given(&mock)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_would_not_finish_is_not_started_and_both_figures_are_told() {
    let mock = failing(fault());
    let start = Instant::now();
    // a pause of 0.2 s and a usual 0.4 s fit into 0.6 s; a pause of 0.4 s more does not
    let call = within(&read(Some(400.0)), ms(600));
    let error = retry(mock.clone(), 9).oneshot(call).await.unwrap_err();
    assert_eq!((mock.started(), start.elapsed()), (2, ms(200)));
    assert_eq!(
        error.kind(),
        ErrorKind::ServerFault,
        "what failed is still told"
    );
    let told = error.message();
    for part in [
        "busy; not repeated",
        "a pause of 400ms",
        "the usual 400ms",
        "400ms away",
    ] {
        assert!(told.contains(part), "{part:?} in {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_starts_no_repeat() {
    let mock = failing(fault());
    let call = within(&read(None), Duration::ZERO);
    retry(mock.clone(), 3).oneshot(call).await.unwrap_err();
    assert_eq!(mock.started(), 1);
}

proptest! {
    /// Whatever the deadline, no attempt is given more than there is, each but the last leaves time
    /// for one more, and no repeat begins that would not finish.
    #[test]
    fn every_attempt_fits(
        limit in 1_u64..60_000,
        estimated in prop::option::of(1_u64..20_000),
        attempts in 1_u32..6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let mock = MockService::new({
            let inner = silent();
            move |call, _| {
                let left = call.deadline().unwrap() - Instant::now().into_std();
                let share = call.attempt().until.map(|until| until - Instant::now().into_std());
                let inner = inner.clone();
                async move {
                    let usual = call.plan().limits.estimated_duration.unwrap_or_default();
                    let fits = left + ms(2) >= usual;
                    assert!(call.attempt().number == 1 || fits, "{left:?} of {usual:?}");
                    if let Some(share) = share {
                        // a timer may be late by a millisecond
                        let need = call.plan().limits.first_backoff.max(usual * 2) - ms(2);
                        assert!(share >= need, "{share:?} of {need:?}");
                        assert!(share < left);
                    }
                    inner.oneshot(call).await
                }
            }
        });
        let start = runtime.block_on(async {
            let start = Instant::now();
            let tool = read(estimated.map(|ms| f64::from(u32::try_from(ms).unwrap())));
            let call = within(&tool, ms(limit));
            retry(mock.clone(), attempts).oneshot(call).await.unwrap_err();
            start.elapsed()
        });
        prop_assert!(start <= ms(limit + 1), "{start:?} of {limit} ms");
        let shared = mock.seen()[0].attempt().until.is_some();
        prop_assert!(mock.started() > usize::from(shared), "one more always fits");
    }
}
