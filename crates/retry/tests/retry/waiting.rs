//! Calls that wait for a breaker: for how long, and at whose cost.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, Reopening, ToolCall, ToolError};
use callward_retry::RetryConfig;
use callward_testkit::{MockService, call};
use futures_util::future::join_all;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{self, Output, layer, ms, named, plain, read, result, rows, run, runtime, within};

/// A breaker, or a server, that notifies when it is worth another attempt.
#[derive(Clone, Default)]
struct Gate(Arc<Notify>);

impl Gate {
    fn reopening(&self) -> Reopening {
        let gate = self.0.clone();
        Arc::new(move || {
            let gate = gate.clone();
            Box::pin(async move { gate.notified().await })
        })
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn refused(stated: u64) -> ToolError {
    ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, "open").with_retry_after(secs(stated))
}

fn gone() -> ToolError {
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "started again")
}

/// An attempt at a gate: when it began, and its share of the time.
type Attempt = (u128, Option<Duration>);

/// Sends calls to a gate that fails them with this error, and opens after some seconds, with
/// notice or without.
async fn at_gate(
    config: RetryConfig,
    calls: Vec<ToolCall>,
    (error, opens, notifies): (ToolError, Option<u64>, bool),
) -> (Vec<Attempt>, Vec<Output>) {
    let (gate, start) = (Gate::default(), Instant::now());
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let mock = MockService::new({
        let (gate, attempts) = (gate.clone(), attempts.clone());
        move |call: ToolCall, _| {
            let at = start.elapsed();
            let share = call.attempt().share.as_ref().map(|share| share.time());
            attempts.lock().push((at.as_millis(), share));
            let closed = || {
                let mut error = error.clone();
                error.reopening = notifies.then(|| gate.reopening());
                error
            };
            let is_open = opens.is_some_and(|opens| at >= secs(opens));
            std::future::ready(if is_open { result("ok") } else { Err(closed()) })
        }
    });
    let opening = async {
        if let Some(opens) = opens {
            sleep(secs(opens)).await;
            gate.0.notify_waiters();
        }
    };
    let layer = layer(config);
    let calls = calls
        .into_iter()
        .map(|call| layer.layer(mock.clone()).oneshot(call));
    let (results, ()) = tokio::join!(join_all(calls), opening);
    (attempts.lock().clone(), results)
}

/// The seconds of a call, how a gate refuses it, after how many seconds it opens, with notice or
/// without, when attempts begin, and a part of the error.
const WAITS: &str = "
    within  refusal               opens  notice  begins         error
    600     breaker_open-@30000   2      yes     0 2100         none
    600     breaker_open-@300000  2      yes     0 2100         none
    20      breaker_open-@30000   2      yes     0 2100         none
    600     breaker_open-@30000   never  yes     0 30100 60100  waited for 60.1s
    600     breaker_open-@300000  never  yes     0 60100        scripted
    20      breaker_open-@30000   never  yes     0 19900        deadline
    none    breaker_open-@30000   never  yes     0              no deadline
    10      connect_failed-       2      yes     0 2100         none
    10      connect_failed-       30     yes     0 9900         scripted
    10      connect_failed-       30     no      0 100 300      scripted
";

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_breaker_or_a_server_but_not_too_long() {
    for [limit, refusal, opens, notice, begins, says] in rows(WAITS) {
        let row = format!("{refusal} within {limit}, open after {opens}, notice {notice}");
        let call = match limit.parse() {
            Ok(limit) => within(secs(limit), read()),
            Err(_) => read(),
        };
        let (refusal, opens) = (result(refusal).unwrap_err(), opens.parse().ok());
        let gate = (refusal, opens, notice == "yes");
        let (attempts, results) = at_gate(plain(|_| {}), vec![call], gate).await;
        let found: Vec<_> = attempts.iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(found.join(" "), begins, "{row}");
        match &results[0] {
            Ok(_) => assert_eq!(says, "none", "{row}"),
            Err(error) => assert!(error.message.contains(says), "{row}: {error}"),
        }
    }
}

/// Waiting for a server does not bypass the budget, nor the number of allowed attempts.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_server_is_a_paid_and_counted_attempt() {
    for (reserve, attempts) in [(0, 1), (1, 2), (9, 3)] {
        let mock = MockService::new(|_, _| async {
            let gate = Gate::default();
            gate.0.notify_one();
            let mut error = gone();
            error.reopening = Some(gate.reopening());
            Err(error)
        });
        let config = plain(|config| bed::reserve(config, reserve));
        let service = layer(config).layer(mock.clone());
        service.oneshot(within(secs(60), read())).await.unwrap_err();
        assert_eq!(mock.started(), attempts);
    }
}

/// What an attempt may take is a share of the time that is left when it is sent, not of what would
/// be left if it had waited for as long as it might.
#[tokio::test(start_paused = true)]
async fn an_attempt_after_a_short_wait_shares_all_time_left() {
    for (opens, left) in [(2, 58), (30, 30)] {
        let call = within(secs(60), read());
        let gate = (refused(30), Some(opens), true);
        let (attempts, _) = at_gate(plain(|_| {}), vec![call], gate).await;
        // half of what is left after the pause before it, and the longest that may come after it
        let expected = (secs(left) - ms(100) - ms(200)) / 2;
        assert_eq!(attempts[1].1, Some(expected), "{opens}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_come_in_steps_that_double() {
    // a spent budget: to wait costs nothing
    let config = plain(|config| bed::reserve(config, 0));
    let calls = (0..31).map(|_| within(secs(60), read())).collect();
    let gate = (refused(30), Some(2), true);
    let (attempts, results) = at_gate(config, calls, gate).await;
    assert!(results.iter().all(Result::is_ok));
    let at = |step: u128| {
        let begins = attempts.iter().map(|(at, _)| *at);
        begins.filter(|at| *at == 2_000 + step * 100).count()
    };
    assert_eq!([1, 2, 3, 4, 5].map(at), [1, 2, 4, 8, 16]);
    // a call that waits later is the first again
    let layer = layer(config);
    for _ in 0..2 {
        let late = run(&layer, within(secs(60), read()), "breaker_open-@3000 ok").await;
        assert_eq!(late.begins, [0, 3_100]);
    }
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
                match first && was_sent {
                    true => result("timeout?"),
                    false => Err(refused(30)),
                }
            });
            let config = plain(|config| bed::reserve(config, 50));
            let layer = layer(config);
            let start = |was_sent: bool| {
                let call = call(&named("read"), json!({"sent": was_sent}));
                let waiting = layer.layer(mock.clone()).oneshot(within(secs(600), call));
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
}
