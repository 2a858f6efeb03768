//! Calls that wait for a breaker: for how long, and at whose cost.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callward_core::{
    BoxFuture, Delivery, ErrorKind, Reopening, Reopens, ServerId, ToolCall, ToolError, ToolOutput,
};
use callward_retry::{Backoff, Jitter, RetryConfig, RetryLayer};
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

/// A breaker that notifies when it admits calls.
#[derive(Clone, Default)]
struct Gate(Arc<Notify>);

impl Reopens for Gate {
    fn reopened(&self) -> BoxFuture<'static, ()> {
        let gate = self.0.clone();
        Box::pin(async move { gate.notified().await })
    }
}

fn refused(secs: u64) -> ToolError {
    ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, "open")
        .with_retry_after(Duration::from_secs(secs))
}

fn lost() -> ToolError {
    ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer")
}

/// Pauses are known: 100 ms, 200 ms, and so on.
fn plain() -> RetryConfig {
    RetryConfig::default().with_backoff(Backoff::new(Jitter::None, Duration::from_secs(10)))
}

fn read(arguments: Value) -> ToolCall {
    let tool = tool("get_order").read_only().build();
    call(&tool, arguments)
}

fn within(secs: u64, arguments: Value) -> ToolCall {
    let deadline = Instant::now() + Duration::from_secs(secs);
    read(arguments).with_deadline(deadline.into_std())
}

/// One call, refused by a gate that states this time and opens after that one, and when it was
/// tried.
async fn tried(stated: u64, opens: Option<u64>, limit: u64) -> (Vec<Duration>, Option<ToolError>) {
    let (gate, begins) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
    let start = Instant::now();
    let is_open = move |at: Duration| opens.is_some_and(|opens| at >= Duration::from_secs(opens));
    let mock = MockService::new({
        let (gate, begins) = (gate.clone(), begins.clone());
        move |_, _| {
            begins.lock().push(start.elapsed());
            let result = match is_open(start.elapsed()) {
                true => Ok(ToolOutput::text("done")),
                false => Err(refused(stated).with_reopening(Reopening::new(gate.clone()))),
            };
            async { result }
        }
    });
    let opening = async {
        if let Some(opens) = opens {
            sleep(Duration::from_secs(opens)).await;
            gate.0.notify_waiters();
        }
    };
    let layer = RetryLayer::new(plain()).unwrap();
    let answer = layer.layer(mock).oneshot(within(limit, json!({})));
    let (answer, ()) = tokio::join!(answer, opening);
    let begins = begins.lock().clone();
    (begins, answer.err())
}

const ZERO: Duration = Duration::ZERO;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_is_sent_soon_after_the_breaker_closes() {
    // also where the time stated is beyond what is waited for, or beyond the deadline
    for (stated, limit) in [(30, 600), (300, 600), (30, 20)] {
        let (begins, error) = tried(stated, Some(2), limit).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(begins, [ZERO, ms(2_100)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_breaker_refused_a_call_is_not_avoided() {
    let server = ServerId::new("a").unwrap();
    let mock = MockService::new(move |call: ToolCall, n| {
        let expected = usize::from(n > 2);
        assert_eq!(call.attempt().avoid.len(), expected, "attempt {n}");
        let result = match n {
            1 => Err(refused(30).with_server(server.clone())),
            2 => Err(lost().with_server(server.clone())),
            _ => Ok(ToolOutput::text("done")),
        };
        async { result }
    });
    let layer = RetryLayer::new(plain()).unwrap();
    let answer = layer.layer(mock.clone()).oneshot(within(600, json!({})));
    answer.await.unwrap();
    assert_eq!(mock.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_stays_open_is_asked_at_the_stated_time() {
    let (begins, error) = tried(30, None, 600).await;
    // and once more, for what is left of a minute
    assert_eq!(begins, [ZERO, ms(30_100), ms(60_100)]);
    let error = error.unwrap();
    assert!(error.message().contains("waited for 60.1s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_wait_exceeds_max_retry_after_or_the_deadline() {
    let (begins, error) = tried(300, None, 600).await;
    assert_eq!(begins, [ZERO, ms(60_100)]);
    assert_eq!(error.unwrap().kind(), ErrorKind::BreakerOpen);
    let (begins, error) = tried(30, None, 20).await;
    // there is time for one more attempt, though not for another pause before it
    assert_eq!(begins, [ZERO, ms(19_900)]);
    let error = error.unwrap();
    assert!(error.message().contains("deadline"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_deadline_waits_for_no_breaker() {
    let gate = Reopening::new(Gate::default());
    let mock = MockService::new(move |_, _| {
        let error = refused(30).with_reopening(gate.clone());
        async { Err(error) }
    });
    let start = Instant::now();
    let service = RetryLayer::new(plain()).unwrap().layer(mock);
    let error = service.oneshot(read(json!({}))).await.unwrap_err();
    assert_eq!(start.elapsed(), ZERO);
    assert!(error.message().contains("no deadline"), "{error}");
}

fn gone() -> ToolError {
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "started again")
}

/// A server that was lost and is expected back is waited for, where its breaker lets calls through.
#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_server_that_restarts() {
    // it is back after two seconds; after the deadline; without notice
    for (returns, is_known, expected) in [
        (2, true, vec![ZERO, ms(2_100)]),
        (30, true, vec![ZERO, ms(9_900)]),
        (30, false, vec![ZERO, ms(100), ms(300)]),
    ] {
        let (gate, begins) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
        let start = Instant::now();
        let mock = MockService::new({
            let (gate, begins) = (gate.clone(), begins.clone());
            move |_, _| {
                let at = start.elapsed();
                begins.lock().push(at);
                let result = match at >= Duration::from_secs(returns) {
                    true => Ok(ToolOutput::text("done")),
                    false if is_known => Err(gone().with_reopening(Reopening::new(gate.clone()))),
                    false => Err(gone()),
                };
                async { result }
            }
        });
        let service = RetryLayer::new(plain()).unwrap().layer(mock);
        let back = async {
            sleep(Duration::from_secs(returns)).await;
            gate.0.notify_waiters();
        };
        let (answer, ()) = tokio::join!(service.oneshot(within(10, json!({}))), back);
        assert_eq!(answer.is_ok(), returns == 2, "{answer:?}");
        assert_eq!(*begins.lock(), expected);
    }
}

/// Waiting for a server does not bypass the budget, nor the number of allowed attempts.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_server_is_a_paid_and_counted_attempt() {
    for (reserve, attempts) in [(0, 1), (1, 2), (9, 3)] {
        let mock = MockService::new(|_, _| async {
            let gate = Gate::default();
            gate.0.notify_one();
            Err(gone().with_reopening(Reopening::new(gate)))
        });
        let config = plain().with_budget_reserve(reserve).with_budget_percent(0);
        let service = RetryLayer::new(config).unwrap().layer(mock.clone());
        service.oneshot(within(60, json!({}))).await.unwrap_err();
        assert_eq!(mock.started(), attempts);
    }
}

/// What an attempt may take is a share of the time that is left when it is sent, not of what would
/// be left if it had waited for as long as it might.
#[tokio::test(start_paused = true)]
async fn an_attempt_after_a_short_wait_shares_all_time_left() {
    for (opens, left) in [(2_u64, 58_u64), (30, 30)] {
        let gate = Gate::default();
        let share = Arc::new(Mutex::new(None));
        let mock = MockService::new({
            let (gate, share) = (gate.clone(), share.clone());
            move |call: ToolCall, _| {
                let result = if call.attempt().number == 1 {
                    Err(refused(30).with_reopening(Reopening::new(gate.clone())))
                } else {
                    *share.lock() = call.attempt().share.as_ref().map(|share| share.time());
                    Ok(ToolOutput::text("done"))
                };
                async { result }
            }
        });
        let service = RetryLayer::new(plain()).unwrap().layer(mock);
        let opening = async {
            sleep(Duration::from_secs(opens)).await;
            gate.0.notify_waiters();
        };
        let (answer, ()) = tokio::join!(service.oneshot(within(60, json!({}))), opening);
        answer.unwrap();
        // half of what is left after the pause before it, and the longest that may come after it
        let expected = (Duration::from_secs(left) - ms(100) - ms(200)) / 2;
        assert_eq!(*share.lock(), Some(expected), "{opens}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_come_in_steps_that_double() {
    let gate = Gate::default();
    let begins = Arc::new(Mutex::new(Vec::new()));
    let opens = Instant::now() + Duration::from_secs(2);
    let mock = MockService::new({
        let (gate, begins) = (gate.clone(), begins.clone());
        move |_, _| {
            let result = if Instant::now() < opens {
                Err(refused(30).with_reopening(Reopening::new(gate.clone())))
            } else {
                begins.lock().push((Instant::now() - opens).as_millis());
                Ok(ToolOutput::text("done"))
            };
            async { result }
        }
    });
    // a spent budget: to wait costs nothing
    let config = plain().with_budget_reserve(0).with_budget_percent(0);
    let layer = RetryLayer::new(config).unwrap();
    let waiting = (0..31).map(|_| layer.layer(mock.clone()).oneshot(within(60, json!({}))));
    let opening = async {
        tokio::time::sleep_until(opens).await;
        gate.0.notify_waiters();
    };
    let (answers, ()) = tokio::join!(join_all(waiting), opening);
    assert!(answers.iter().all(Result::is_ok));
    let begins = begins.lock().clone();
    let at = |step: u128| begins.iter().filter(|begin| **begin == step * 100).count();
    assert_eq!([1, 2, 3, 4, 5].map(at), [1, 2, 4, 8, 16]);
    // a call that waits later is the first again
    let start = Instant::now();
    let late = MockService::sequence(vec![Err(refused(3)), Ok(ToolOutput::text("done"))]);
    let answer = layer.layer(late).oneshot(within(60, json!({}))).await;
    answer.unwrap();
    assert_eq!(start.elapsed(), ms(3_100));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

/// What becomes of each attempt of a call.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![Just(Fate::Answered), Just(Fate::Lost), Just(Fate::Refused)];
    prop::collection::vec(fate, 0..6)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Lost,
    Refused,
}

proptest! {
    /// A waiting call that was not sent before holds nothing. A call that was sent holds the one
    /// retry it is going to make, and returns it when it is dropped.
    #[test]
    fn a_call_that_only_waits_holds_no_token(new in 0_u32..60, sent in 0_u32..30) {
        runtime().block_on(async {
            let mock = MockService::new(|call: ToolCall, _| async move {
                let first = call.attempt().number == 1;
                let was_sent = call.arguments() == br#"{"sent":true}"#;
                Err(if first && was_sent { lost() } else { refused(30) })
            });
            let config = plain().with_budget_percent(0).with_budget_reserve(50);
            let layer = RetryLayer::new(config).unwrap();
            let start = |was_sent: bool| {
                let waiting = layer.layer(mock.clone()).oneshot(within(600, json!({"sent": was_sent})));
                tokio::spawn(async move { drop(waiting.await) })
            };
            let mut waiting: Vec<_> = (0..new).map(|_| start(false)).collect();
            waiting.extend((0..sent).map(|_| start(true)));
            sleep(Duration::from_secs(5)).await;
            prop_assert!(waiting.iter().all(|call| !call.is_finished()));
            let tokens = || layer.budgets().first().map_or(50, |budget| budget.tokens);
            prop_assert_eq!(tokens(), 50 - sent);
            for call in waiting {
                call.abort();
                prop_assert!(call.await.is_err());
            }
            prop_assert_eq!(tokens(), 50);
            Ok(())
        })?;
    }

    /// However often calls are refused on their way, no more of their attempts get out than there
    /// are calls, and retries in reserve; and what is not made is there again at the end.
    #[test]
    fn each_retry_that_is_sent_is_paid_for(
        calls in prop::collection::vec(fates(), 1..40),
        reserve in 0_u32..10,
    ) {
        runtime().block_on(async {
            let out = Arc::new(AtomicU32::new(0));
            let firsts = Arc::new(Mutex::new(vec![0_u32; calls.len()]));
            let fates = calls.clone();
            let (counted, by_call) = (out.clone(), firsts.clone());
            let mock = MockService::new(move |call: ToolCall, _| {
                let arguments: Value = serde_json::from_slice(call.arguments()).unwrap();
                let id = usize::try_from(arguments["id"].as_u64().unwrap()).unwrap();
                let nth = usize::try_from(call.attempt().number).unwrap() - 1;
                let fate = fates[id].get(nth).copied().unwrap_or(Fate::Answered);
                if fate != Fate::Refused {
                    counted.fetch_add(1, Ordering::SeqCst);
                    by_call.lock()[id] += 1;
                }
                async move {
                    match fate {
                        Fate::Answered => Ok(ToolOutput::text("done")),
                        Fate::Lost => Err(lost()),
                        Fate::Refused => Err(refused(1)),
                    }
                }
            });
            let config = plain().with_budget_percent(0).with_budget_reserve(reserve);
            let layer = RetryLayer::new(config).unwrap();
            let all = (0..calls.len()).map(|id| {
                layer.layer(mock.clone()).oneshot(within(600, json!({"id": id})))
            });
            join_all(all).await;
            let retries: u32 = firsts.lock().iter().map(|runs| runs.saturating_sub(1)).sum();
            let left = layer.budgets()[0].tokens;
            prop_assert_eq!(retries + left, reserve, "{} got out", out.load(Ordering::SeqCst));
            Ok(())
        })?;
    }
}
