//! One deadline for all attempts.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, Tool, ToolCall, ToolError, ToolOutput};
use callward_retry::Retry;
use callward_testkit::{MockClient, MockService, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{Layer, ServiceExt};

use crate::bed::{self, layer, ms, of, plain, reserve, result, run, runtime, scripted, with};

/// Never answers, but ends each attempt when its share is over, or at the deadline.
fn silent() -> MockService {
    MockService::new(|call, _| async move {
        let deadline = call.deadline.unwrap().into();
        let mut kind = ErrorKind::DeadlineExceeded;
        if let Some(share) = &call.attempt().share {
            sleep(share.time()).await;
            if share.end(deadline - Instant::now()) {
                kind = ErrorKind::Timeout;
            }
        }
        if kind == ErrorKind::DeadlineExceeded {
            sleep_until(deadline).await;
        }
        Err::<ToolOutput, _>(ToolError::new(kind, Delivery::Unknown, "no answer"))
    })
}

fn read(estimated_ms: Option<f64>) -> Arc<Tool> {
    let tool = tool("get_order").read_only();
    tool.hint(|hints| hints.estimated_duration = estimated_ms)
        .build()
}

fn within(tool: &Arc<Tool>, limit: Duration) -> ToolCall {
    bed::within(limit, call(tool, json!({})))
}

fn retry(inner: MockService, attempts: u32) -> Retry<MockService> {
    layer(plain(|config| bed::attempts(config, attempts))).layer(inner)
}

/// How long each attempt was given.
fn given(mock: &MockService) -> Vec<Option<Duration>> {
    let seen = mock.seen();
    let of = |call: &ToolCall| Some(call.attempt().share.as_ref()?.time());
    seen.iter().map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_leaves_time_for_every_attempt() {
    let (mock, start) = (silent(), Instant::now());
    let call = within(&read(Some(400.0)), ms(9_200));
    let error = retry(mock.clone(), 3).oneshot(call).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    // (9.2 s - 0.2 s) / 3 from the beginning; (6 s - 0.4 s) / 2 after the first pause; then all
    assert_eq!(given(&mock), [Some(ms(3_000)), Some(ms(2_800)), None]);
    assert_eq!(start.elapsed(), ms(9_200), "none of it is left unused");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_asked_the_client_has_all_the_time() {
    let (inner, start) = (silent(), Instant::now());
    let mock = MockService::new(move |call, _| {
        let inner = inner.clone();
        async move {
            MockClient::ask(&call, "").await;
            inner.oneshot(call).await
        }
    });
    let (_, call) = MockClient::make(within(&read(None), ms(5_000)));
    let error = retry(mock.clone(), 3).oneshot(call).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    assert_eq!((mock.started(), start.elapsed()), (1, ms(5_000)));
}

#[tokio::test(start_paused = true)]
async fn only_an_attempt_before_another_one_has_a_share() {
    let limited = || within(&read(None), ms(5_000));
    let unlimited = call(&read(None), json!({}));
    let unsafe_call = bed::within(ms(5_000), of("pay"));
    for (name, call, attempts, shares) in [
        ("the last has all", limited(), 2, &[true, false][..]),
        ("no deadline", unlimited, 3, &[false; 3]),
        ("one attempt", limited(), 1, &[false]),
        ("an unsafe tool", unsafe_call, 3, &[false]),
    ] {
        let mock = scripted("server_fault!");
        let ended = retry(mock.clone(), attempts).oneshot(call).await;
        ended.unwrap_err();
        let given: Vec<_> = given(&mock).iter().map(Option::is_some).collect();
        assert_eq!(given, shares, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_would_not_finish_is_not_started() {
    // a pause of 0.2 s and a usual 0.4 s fit into 0.7 s; one of 0.4 s and as much again does not
    let call = within(&read(Some(400.0)), ms(700));
    let layer = layer(plain(|config| bed::attempts(config, 9)));
    let ended = run(&layer, call, "server_fault!").await;
    assert_eq!((ended.begins, ended.took), (vec![0, 200], ms(200)));
    let error = ended.result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ServerFault);
    let why = "scripted; not retried: a pause of 400ms and the usual 400ms of a call would not end \
               before the call's deadline, 500ms away";
    assert_eq!(error.message, why);
}

#[tokio::test(start_paused = true)]
async fn while_the_budget_is_spent_no_attempt_is_ended_for_a_retry() {
    let (mock, start) = (silent(), Instant::now());
    let retry = layer(with(|config| reserve(config, 1))).layer(mock.clone());
    let calls = (0..4).map(|_| retry.clone().oneshot(within(&read(None), ms(8_000))));
    let errors = join_all(calls).await;
    // one of the four is retried; the others have all their time
    assert_eq!(mock.started(), 5);
    assert_eq!(start.elapsed(), ms(8_000));
    for error in errors {
        assert_eq!(error.unwrap_err().kind, ErrorKind::DeadlineExceeded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_a_share_is_paid_once_and_refunded_if_not_sent() {
    let layer = layer(with(|config| reserve(config, 2)));
    let left = || layer.budgets()[0].tokens;
    let call = || within(&read(None), ms(8_000));
    let answers = MockService::new(|call: ToolCall, n| async move {
        let share = call.attempt().share.clone();
        if n == 1 {
            assert!(share.unwrap().end(ms(4_000)), "there is a token");
        }
        result(if n == 1 { "timeout?" } else { "ok" })
    });
    layer.layer(answers).oneshot(call()).await.unwrap();
    assert_eq!(left(), 1);
    let given_up = MockService::new(|call: ToolCall, _| async move {
        assert!(call.attempt().share.as_ref().unwrap().end(ms(4_000)));
        std::future::pending().await
    });
    let mut running = Box::pin(layer.layer(given_up.clone()).oneshot(call()));
    assert!((&mut running).now_or_never().is_none());
    assert_eq!(left(), 0);
    drop(running);
    drop(given_up);
    assert_eq!(left(), 1);
    // no retry is asked for with too little time left
    let late = MockService::new(|call: ToolCall, _| async move {
        let share = call.attempt().share.clone();
        assert!(!share.unwrap().end(Duration::ZERO));
        Ok(ToolOutput::text("at last"))
    });
    layer.layer(late).oneshot(call()).await.unwrap();
    assert_eq!(left(), 1);
}

proptest! {
    /// Whatever the deadline, no attempt is given more than there is, each but the last leaves time
    /// for one more, and no retry begins that would not finish.
    #[test]
    fn every_attempt_fits(
        limit in 1_u64..60_000,
        estimated in prop::option::of(1_u32..20_000),
        attempts in 1_u32..6,
    ) {
        let tool = read(estimated.map(f64::from));
        let limits = &tool.plan().limits;
        let (usual, first) = (limits.estimated_duration, limits.first_backoff);
        let usual = usual.unwrap_or_default();
        let inner = silent();
        let mock = MockService::new(move |call: ToolCall, n| {
            let left = call.deadline.unwrap() - Instant::now().into_std();
            // a timer may be late by a millisecond
            assert!(n == 1 || left + ms(2) >= usual, "{left:?} of {usual:?}");
            if let Some(share) = call.attempt().share.as_ref().map(|share| share.time()) {
                let need = first.max(usual * 2) - ms(2);
                assert!(need <= share && share < left, "{need:?}, {share:?} of {left:?}");
            }
            inner.clone().oneshot(call)
        });
        let took = runtime().block_on(async {
            let start = Instant::now();
            let call = within(&tool, ms(limit));
            retry(mock.clone(), attempts).oneshot(call).await.unwrap_err();
            start.elapsed()
        });
        prop_assert!(took <= ms(limit + 1), "{took:?} of {limit} ms");
        let shared = mock.seen()[0].attempt().share.is_some();
        prop_assert!(mock.started() > usize::from(shared), "one more always fits");
    }
}
