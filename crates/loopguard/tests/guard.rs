//! The loop guard, as a caller sees it, before scripted servers on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, Purpose, SessionId, ToolCall, ToolError,
    ToolOutput,
};
use callward_loopguard::{LoopGuard, LoopGuardConfig, LoopGuardLayer, Sessionless};
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

async fn send(guard: &Guard, call: ToolCall) -> (bool, String) {
    let record = Arc::new(CallRecord::new());
    let call = call.with_record(record.clone());
    match guard.clone().oneshot(call).await {
        Ok(output) => (record.facts().is_guarded, output.to_text()),
        Err(error) => (record.facts().is_guarded, error.to_string()),
    }
}

async fn is_held_back(guard: &Guard, call: ToolCall) -> bool {
    send(guard, call).await.0
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
    let lost = || error(ErrorKind::OutcomeUnknown, Delivery::Unknown);
    for (result, text) in [(no(), "no such order: 7"), (lost(), "no answer came")] {
        let (server, layer) = (in_turn(vec![result]), LoopGuardLayer::default());
        let guard = layer.layer(server.clone());
        pass(&guard, 5).await;
        let output = guard.clone().oneshot(ask(json!({}))).await.unwrap();
        assert!(output.is_error());
        for part in [text, "5 times"] {
            assert!(output.to_text().contains(part), "{}", output.to_text());
        }
        assert_eq!(server.started(), 5);
        assert_eq!((layer.stats().answered, layer.stats().held), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn other_arguments_tools_and_sessions_are_not_held_back() {
    let guard = guard(vec![no()]);
    let failing = || ask(json!({"n": 1}));
    for _ in 0..5 {
        send(&guard, failing()).await;
    }
    let spaced = ToolCall::new(failing().tool().clone(), r#"{ "n" : 1 }"#);
    let spaced = spaced.with_caller(session("1"));
    assert!(is_held_back(&guard, spaced).await, "the same value");
    let other_tool = call(&tool("other").build(), json!({"n": 1}));
    for call in [
        ask(json!({"n": 2})),
        other_tool.with_caller(session("1")),
        failing().with_caller(session("2")),
        failing().with_caller(Caller::local()),
        failing().in_background(Purpose::Refresh),
    ] {
        assert!(!is_held_back(&guard, call).await);
    }
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

/// What happens between the failures of a call and its repetition.
#[derive(Debug, Clone, Copy)]
enum Between {
    Nothing,
    /// Another tool's call ends so.
    Ends(Result<(), (ErrorKind, Delivery)>),
    /// Another tool's call answers with `isError`.
    IsError,
    /// Another tool's call is dropped while it runs.
    Dropped,
    /// A read succeeds.
    Read,
}

#[tokio::test(start_paused = true)]
async fn a_write_that_may_have_changed_something_clears_all_sessions() {
    use Between::{Dropped, Ends, IsError, Nothing, Read};
    use Delivery::{Answered, NotSent, Unknown};
    let cases = [
        (Nothing, true),
        (Ends(Ok(())), false),
        (Ends(Err((ErrorKind::Timeout, Unknown))), false),
        (Ends(Err((ErrorKind::OutcomeUnknown, Unknown))), false),
        (Ends(Err((ErrorKind::ServerFault, Answered))), false),
        (Dropped, false),
        (IsError, true),
        (Ends(Err((ErrorKind::InvalidCall, Answered))), true),
        (Ends(Err((ErrorKind::RateLimited, Answered))), true),
        (Ends(Err((ErrorKind::ConnectFailed, NotSent))), true),
        (Read, true),
    ];
    let callers = [session("1"), session("2"), Caller::local()];
    for ((between, held_back), caller) in cases
        .iter()
        .flat_map(|case| callers.iter().map(move |caller| (*case, caller.clone())))
    {
        let server = MockService::new(move |call, _| async move {
            match (call.tool().name().as_str(), between) {
                ("act", _) | (_, IsError) => Ok(ToolOutput::error_text("no")),
                (_, Ends(Err((kind, delivery)))) => Err(ToolError::new(kind, delivery, "x")),
                (_, Dropped) => std::future::pending().await,
                _ => Ok(ToolOutput::text("done")),
            }
        });
        let guard = LoopGuardLayer::default().layer(server);
        pass(&guard, 5).await;
        let other = match between {
            Read => tool("other").read_only().build(),
            _ => tool("other").build(),
        };
        let other = call(&other, json!({})).with_caller(caller);
        if !matches!(between, Nothing) {
            let sent = guard.clone().oneshot(other);
            let _ = tokio::time::timeout(Duration::from_secs(1), sent).await;
        }
        let found = is_held_back(&guard, ask(json!({}))).await;
        assert_eq!(found, held_back, "{between:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_failures() {
    let mut results = vec![no(), no(), no(), no(), yes()];
    results.extend(vec![no(); 5]);
    let guard = guard(results);
    pass(&guard, 10).await;
    assert_held_back(&guard).await;
}

#[tokio::test(start_paused = true)]
async fn after_the_wait_one_trial_is_admitted_and_its_success_opens() {
    let mut results = vec![no(); 6];
    results.push(yes());
    let guard = guard(results);
    pass(&guard, 5).await;
    advance(Duration::from_secs(1)).await;
    assert_held_back(&guard).await;
    advance(Duration::from_secs(1)).await;
    // the trial, which fails
    pass(&guard, 1).await;
    advance(Duration::from_secs(2)).await;
    for _ in 0..3 {
        let (guarded, text) = send(&guard, ask(json!({}))).await;
        assert_eq!((guarded, &*text), (false, "yes"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_says_later_neither_counts_nor_uses_the_trial() {
    let busy = || error(ErrorKind::RateLimited, Delivery::Answered);
    let mut results = vec![no(); 4];
    results.extend(vec![busy(); 20]);
    results.extend([no(), busy()]);
    let guard = guard(results);
    pass(&guard, 25).await;
    assert_held_back(&guard).await;
    advance(MINUTE * 5).await;
    pass(&guard, 3).await;
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
    for (choice, held_back) in [(Sessionless::Pass, false), (Sessionless::ByPrincipal, true)] {
        let mut config = LoopGuardConfig::default();
        config.without_session = choice;
        let guard = LoopGuardLayer::new(config)
            .unwrap()
            .layer(in_turn(vec![no()]));
        let stateless = || ask(json!({})).with_caller(Caller::local());
        for _ in 0..5 {
            send(&guard, stateless()).await;
        }
        assert_eq!(is_held_back(&guard, stateless()).await, held_back);
    }
}
