//! The loop guard, as a caller sees it, before scripted servers on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, SessionId, ToolCall, ToolError, ToolOutput,
    WithoutSession,
};
use callward_loopguard::{LoopGuard, LoopGuardConfig, LoopGuardLayer};
use callward_testkit::{MockService, call, contract, tool};
use serde_json::{Value, json};
use tokio::time::advance;
use tower::{Layer, ServiceExt};

const MINUTE: Duration = Duration::from_secs(60);

type Output = Result<ToolOutput, ToolError>;
type Guard = LoopGuard<MockService>;

fn session(id: &str) -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("ada")).with_session(SessionId::new(id)))
}

fn ask(arguments: Value) -> ToolCall {
    call(&tool("act").build(), arguments).with_caller(session("1"))
}

fn no() -> Output {
    Ok(ToolOutput::error_text("no such order: 7"))
}

fn yes() -> Output {
    Ok(ToolOutput::text("yes"))
}

fn error(kind: ErrorKind, delivery: Delivery) -> Output {
    Err(ToolError::new(kind, delivery, "no answer came"))
}

/// Answers with the n-th result, and with the last one from then on.
fn in_turn(results: Vec<Output>) -> MockService {
    MockService::new(move |_, n| {
        let result = results.get(n - 1).or_else(|| results.last());
        std::future::ready(result.unwrap().clone())
    })
}

fn guard(results: Vec<Output>) -> Guard {
    LoopGuardLayer::default().layer(in_turn(results))
}

/// A further round of the call.
fn round() -> ToolCall {
    let mut call = ask(json!({}));
    call.context_mut().round = Some(Arc::default());
    call
}

/// Sends a call, and returns `true` if the guard answers.
async fn is_held_back(guard: &Guard, call: ToolCall) -> bool {
    let record = Arc::new(CallRecord::new());
    let call = call.with_record(record.clone());
    let _any_result = guard.clone().oneshot(call).await;
    record.facts().is_guarded
}

/// Sends the call this often; none is held back.
async fn pass(guard: &Guard, times: usize) {
    for n in 0..times {
        assert!(!is_held_back(guard, ask(json!({}))).await, "call {n}");
    }
}

async fn assert_held_back(guard: &Guard) {
    assert!(is_held_back(guard, ask(json!({}))).await);
}

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    contract::check(|inner| LoopGuardLayer::default().layer(inner)).await;
    contract::check(|inner| LoopGuardLayer::off().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn after_five_failures_the_guard_answers_and_asks_no_server() {
    let lost = error(ErrorKind::OutcomeUnknown, Delivery::Unknown);
    for (result, text) in [(no(), "no such order: 7"), (lost, "no answer came")] {
        let (server, layer) = (in_turn(vec![result]), LoopGuardLayer::default());
        let guard = layer.layer(server.clone());
        pass(&guard, 5).await;
        let output = guard.clone().oneshot(ask(json!({}))).await.unwrap();
        assert!(output.is_error());
        for part in [text, "`act`", "5 times", "ask", "for 2 s"] {
            assert!(output.to_text().contains(part), "{}", output.to_text());
        }
        assert_eq!(server.started(), 5);
        assert_eq!((layer.stats().answered, layer.stats().held), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn other_calls_are_not_held_back() {
    let guard = guard(vec![no()]);
    pass(&guard, 5).await;
    for call in [
        ask(json!({"n": 2})),
        ask(json!({})).with_caller(Caller::local()),
        ask(json!({})).in_background(),
        round(),
    ] {
        assert!(!is_held_back(&guard, call).await);
    }
    assert_held_back(&guard).await;
}

#[tokio::test(start_paused = true)]
async fn a_further_round_is_no_repeat_and_clears_nothing() {
    let server = MockService::new(|call: ToolCall, n| async move {
        if call.round.is_some() && n > 6 {
            yes()
        } else {
            no()
        }
    });
    let guard = LoopGuardLayer::default().layer(server);
    for _ in 0..6 {
        assert!(!is_held_back(&guard, round()).await);
    }
    pass(&guard, 5).await;
    assert!(!is_held_back(&guard, round()).await);
    assert_held_back(&guard).await;
}

#[tokio::test(start_paused = true)]
async fn a_read_is_never_held_back() {
    let (server, layer) = (in_turn(vec![no()]), LoopGuardLayer::default());
    let guard = layer.layer(server.clone());
    let poll = call(&tool("read_file").read_only().build(), json!({}));
    let poll = poll.with_caller(session("1"));
    for _ in 0..20 {
        assert!(!is_held_back(&guard, poll.clone()).await);
    }
    assert_eq!((server.started(), layer.stats().held), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_may_have_changed_something_clears_all_sessions() {
    use Delivery::{NotSent, Unknown};
    // how the call of another tool ends, and whether the failing call is held back then
    let cases = [
        (Some(yes()), false),
        (Some(error(ErrorKind::OutcomeUnknown, Unknown)), false),
        // it is dropped while it runs
        (None, false),
        (Some(no()), true),
        (Some(error(ErrorKind::ConnectFailed, NotSent)), true),
    ];
    let callers = [session("1"), session("2"), Caller::local()];
    for (end, held_back) in cases {
        for caller in callers.clone() {
            let name = format!("{end:?}");
            let end = end.clone();
            let server = MockService::new(move |call, _| {
                let end = end.clone();
                async move {
                    match (call.tool().name().as_str(), end) {
                        ("act", _) => no(),
                        (_, Some(end)) => end,
                        (_, None) => std::future::pending().await,
                    }
                }
            });
            let guard = LoopGuardLayer::default().layer(server);
            pass(&guard, 5).await;
            // a read changes nothing
            let read = call(&tool("look").read_only().build(), json!({}));
            let other = call(&tool("other").build(), json!({}));
            for other in [read, other] {
                assert_held_back(&guard).await;
                let sent = guard.clone().oneshot(other.with_caller(caller.clone()));
                let _ = tokio::time::timeout(Duration::from_secs(1) / 2, sent).await;
            }
            let found = is_held_back(&guard, ask(json!({}))).await;
            assert_eq!(found, held_back, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_wait_one_trial_is_admitted_and_a_busy_server_uses_none() {
    let busy = || error(ErrorKind::RateLimited, Delivery::Answered);
    let mut results = vec![no(); 4];
    results.extend(vec![busy(); 20]);
    results.extend([no(), no(), busy(), yes()]);
    let guard = guard(results);
    pass(&guard, 25).await;
    advance(Duration::from_secs(1)).await;
    assert_held_back(&guard).await;
    advance(Duration::from_secs(1)).await;
    // the trial, which fails
    pass(&guard, 1).await;
    assert_held_back(&guard).await;
    advance(Duration::from_secs(2)).await;
    // trials that a server refuses for now, and one that succeeds
    pass(&guard, 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_no_failure_and_its_trial_is_taken_back() {
    let server = MockService::new(|_, n| async move {
        if n == 6 {
            std::future::pending::<()>().await;
        }
        no()
    });
    let guard = LoopGuardLayer::default().layer(server.clone());
    pass(&guard, 5).await;
    advance(MINUTE * 5).await;
    let left = tokio::time::timeout(MINUTE, guard.clone().oneshot(ask(json!({})))).await;
    assert!(left.is_err());
    assert_eq!(server.cancelled(), 1);
    pass(&guard, 1).await;
    assert_held_back(&guard).await;
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_session_count_only_by_config() {
    for (choice, held_back) in [
        (WithoutSession::Pass, false),
        (WithoutSession::ByPrincipal, true),
    ] {
        let mut config = LoopGuardConfig::default();
        config.without_session = choice;
        let guard = LoopGuardLayer::new(config)
            .unwrap()
            .layer(in_turn(vec![no()]));
        let stateless = || ask(json!({})).with_caller(Caller::local());
        for _ in 0..5 {
            assert!(!is_held_back(&guard, stateless()).await);
        }
        assert_eq!(is_held_back(&guard, stateless()).await, held_back);
    }
}
