//! The layer before scripted servers.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, Purpose, SessionId, ToolCall, ToolError,
    ToolOutput,
};
use callward_loopguard::{LoopGuard, LoopGuardConfig, LoopGuardLayer, Sessionless};
use callward_testkit::{MockService, call, tool};
use serde_json::{Value, json};
use tokio::time::advance;
use tower::{Layer, ServiceExt};

const MINUTE: Duration = Duration::from_secs(60);

fn session(id: &str) -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("ada")).with_session(SessionId::new(id)))
}

fn ask(arguments: Value) -> ToolCall {
    call(&tool("act").build(), arguments).with_caller(session("1"))
}

/// Fails while its arguments say so.
fn server() -> MockService {
    MockService::new(|call, _| async move {
        let arguments: Value = serde_json::from_slice(call.arguments()).unwrap();
        match arguments["fails"].as_bool() {
            Some(true) => Ok(ToolOutput::error_text("no such order: 7")),
            _ => Ok(ToolOutput::text("done")),
        }
    })
}

/// Answers with the n-th result, and with the last one from then on.
fn in_turn(results: Vec<Result<ToolOutput, ToolError>>) -> MockService {
    MockService::new(move |_, n| {
        let result = results
            .get(n - 1)
            .or_else(|| results.last())
            .cloned()
            .unwrap();
        std::future::ready(result)
    })
}

async fn send(guard: &LoopGuard<MockService>, call: ToolCall) -> (bool, String) {
    let record = Arc::new(CallRecord::new());
    let call = call.with_record(record.clone());
    match guard.clone().oneshot(call).await {
        Ok(output) => (record.was_guarded(), output.to_text()),
        Err(error) => (record.was_guarded(), error.to_string()),
    }
}

async fn is_held_back(guard: &LoopGuard<MockService>, call: ToolCall) -> bool {
    send(guard, call).await.0
}

#[tokio::test(start_paused = true)]
async fn after_five_failures_the_guard_answers_and_asks_no_server() {
    let server = server();
    let layer = LoopGuardLayer::default();
    let guard = layer.layer(server.clone());
    for _ in 0..5 {
        let (guarded, text) = send(&guard, ask(json!({"fails": true}))).await;
        assert_eq!((guarded, &*text), (false, "no such order: 7"));
    }
    let output = guard.clone().oneshot(ask(json!({"fails": true}))).await;
    let output = output.unwrap();
    assert!(output.is_error());
    let text = output.to_text();
    assert!(
        text.contains("no such order: 7") && text.contains("5 times"),
        "{text}"
    );
    assert_eq!(server.started(), 5);
    assert_eq!((layer.stats().answered, layer.stats().held), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn other_arguments_tools_and_sessions_are_not_held_back() {
    let guard = LoopGuardLayer::default().layer(server());
    let failing = || ask(json!({"fails": true, "n": 1}));
    for _ in 0..5 {
        send(&guard, failing()).await;
    }
    let spaced = ToolCall::new(failing().tool().clone(), r#"{ "n":1, "fails":true }"#)
        .with_caller(session("1"));
    assert!(is_held_back(&guard, spaced).await, "the same value");
    let other_tool = call(&tool("other").build(), json!({"fails": true, "n": 1}));
    for call in [
        ask(json!({"fails": true, "n": 2})),
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
    let server = server();
    let layer = LoopGuardLayer::default();
    let guard = layer.layer(server.clone());
    let poll = call(
        &tool("read_file").read_only().build(),
        json!({"fails": true}),
    )
    .with_caller(session("1"));
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
        for _ in 0..5 {
            assert!(!is_held_back(&guard, ask(json!({}))).await);
        }
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
    let no = || Ok(ToolOutput::error_text("no"));
    let yes = || Ok(ToolOutput::text("yes"));
    let mut results = vec![no(), no(), no(), no(), yes()];
    results.extend([no(), no(), no(), no(), no()]);
    let guard = LoopGuardLayer::default().layer(in_turn(results));
    for _ in 0..10 {
        assert!(!is_held_back(&guard, ask(json!({}))).await);
    }
    assert!(is_held_back(&guard, ask(json!({}))).await);
}

#[tokio::test(start_paused = true)]
async fn after_the_wait_one_trial_is_admitted_and_its_success_opens() {
    let no = || Ok(ToolOutput::error_text("no"));
    let mut results = vec![no(); 6];
    results.push(Ok(ToolOutput::text("yes")));
    let guard = LoopGuardLayer::default().layer(in_turn(results));
    for _ in 0..5 {
        send(&guard, ask(json!({}))).await;
    }
    advance(Duration::from_secs(1)).await;
    assert!(is_held_back(&guard, ask(json!({}))).await);
    advance(Duration::from_secs(1)).await;
    assert!(
        !is_held_back(&guard, ask(json!({}))).await,
        "the try, which fails"
    );
    advance(Duration::from_secs(2)).await;
    for _ in 0..3 {
        let (guarded, text) = send(&guard, ask(json!({}))).await;
        assert_eq!((guarded, &*text), (false, "yes"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_says_later_neither_counts_nor_uses_the_trial() {
    let busy = ToolError::new(ErrorKind::RateLimited, Delivery::Answered, "slow down");
    let no = || Ok(ToolOutput::error_text("no"));
    let mut results = vec![no(); 4];
    results.extend(vec![Err(busy.clone()); 20]);
    results.push(no());
    results.push(Err(busy));
    let guard = LoopGuardLayer::default().layer(in_turn(results));
    for _ in 0..25 {
        assert!(!is_held_back(&guard, ask(json!({}))).await);
    }
    assert!(is_held_back(&guard, ask(json!({}))).await, "five failures");
    advance(MINUTE * 5).await;
    for _ in 0..3 {
        assert!(!is_held_back(&guard, ask(json!({}))).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_no_failure_and_its_trial_is_taken_back() {
    let server = MockService::new(|_, n| async move {
        if n == 6 {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::error_text("no"))
    });
    let guard = LoopGuardLayer::default().layer(server.clone());
    for _ in 0..5 {
        send(&guard, ask(json!({}))).await;
    }
    advance(MINUTE * 5).await;
    let left = tokio::time::timeout(MINUTE, guard.clone().oneshot(ask(json!({})))).await;
    assert!(left.is_err());
    assert_eq!(server.cancelled(), 1);
    assert!(!is_held_back(&guard, ask(json!({}))).await);
    assert!(is_held_back(&guard, ask(json!({}))).await);
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_session_count_only_by_config() {
    for (choice, held_back) in [(Sessionless::Pass, false), (Sessionless::ByPrincipal, true)] {
        let config = LoopGuardConfig::default().with_without_session(choice);
        let guard = LoopGuardLayer::new(config).unwrap().layer(server());
        let stateless = || ask(json!({"fails": true})).with_caller(Caller::local());
        for _ in 0..5 {
            send(&guard, stateless()).await;
        }
        assert_eq!(is_held_back(&guard, stateless()).await, held_back);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_call_itself_counts_like_is_error() {
    let lost = ToolError::new(
        ErrorKind::OutcomeUnknown,
        Delivery::Unknown,
        "no answer came",
    );
    let guard = LoopGuardLayer::default().layer(in_turn(vec![Err(lost)]));
    for _ in 0..5 {
        assert!(!is_held_back(&guard, ask(json!({}))).await);
    }
    let (guarded, text) = send(&guard, ask(json!({}))).await;
    assert!(guarded && text.contains("no answer came"), "{text}");
}
