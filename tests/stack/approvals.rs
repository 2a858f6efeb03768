//! Approvals in a stack: where calls wait, and what the other layers see of it.

use std::sync::Arc;
use std::time::Duration;

use callward::approval::{ApprovalConfig, ApprovalLayer, Approvals, Decision, LocalStore, State};
use callward::{
    Caller, Delivery, ErrorKind, Principal, SessionId, Stack, StackBuilder, ToolCall, ToolError,
    ToolOutput,
};
use callward_testkit::MockService;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::bed::{alone, failing, read, tool, wipe};

async fn requests() -> Approvals {
    let config = ApprovalConfig::default();
    Approvals::open(LocalStore::default(), config)
        .await
        .unwrap()
}

async fn start(stack: &Stack, tool: &str) -> JoinHandle<Result<ToolOutput, ToolError>> {
    let caller = Caller::new(Principal::new("ada")).with_session(SessionId::new("1"));
    let call = stack.prepare(tool, r#"{"id":1}"#).unwrap();
    let running = tokio::spawn(stack.run(call.with_caller(Arc::new(caller))));
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
    running
}

async fn approve(stack: &Stack) {
    decide(stack, true).await;
}

async fn decide(stack: &Stack, approves: bool) {
    let approvals = stack.approvals().unwrap();
    let all = approvals.list().await.unwrap();
    let pending = all.iter().find(|request| request.state == State::Pending);
    let decision = Decision {
        approves,
        by: Principal::new("ops"),
        roles: Vec::new(),
        channel: "test".to_owned(),
        note: None,
    };
    let id = &pending.unwrap().id;
    approvals.decide(id, decision).await.unwrap();
}

fn builder() -> StackBuilder {
    Stack::builder().call_deadline(Duration::from_secs(5))
}

#[tokio::test(start_paused = true)]
async fn waiting_counts_against_no_deadline_and_a_retry_needs_no_approval() {
    let approvals = requests().await;
    // the first attempt fails before it is sent; retries are inside of the approval
    let mock = failing(1, ErrorKind::ConnectFailed, Delivery::NotSent);
    let rule = |call: &ToolCall| call.plan().is_write().then(|| "it writes".into());
    let layer = ApprovalLayer::new(approvals, rule);
    let hints = json!({"idempotentHint": true, "destructiveHint": false});
    let write = tool("set_order", hints);
    let (stack, _server) = alone(builder().approvals(layer), vec![write], &mock).await;
    let running = start(&stack, "s.set_order").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(mock.started(), 0);
    approve(&stack).await;
    assert!(!running.await.unwrap().unwrap().is_error());
    assert_eq!(mock.started(), 2, "two attempts of one execution");
    let all = stack.approvals().unwrap().list().await.unwrap();
    assert_eq!((all.len(), all[0].state), (1, State::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn each_destructive_call_asks_and_a_read_does_not() {
    let mock = MockService::counting();
    let tools = vec![read("get_order"), wipe("delete_order")];
    let builder = builder().approvals(requests().await);
    let (stack, _server) = alone(builder, tools, &mock).await;
    start(&stack, "s.get_order").await.await.unwrap().unwrap();
    for runs in 2..4 {
        let running = start(&stack, "s.delete_order").await;
        approve(&stack).await;
        running.await.unwrap().unwrap();
        assert_eq!(mock.started(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cached_answer_is_asked_about_as_any_other() {
    let mock = MockService::counting();
    let layer = ApprovalLayer::new(requests().await, |_: &ToolCall| Some("all".into()));
    let (stack, _server) = alone(builder().approvals(layer), vec![read("get_order")], &mock).await;
    for _ in 0..2 {
        let running = start(&stack, "s.get_order").await;
        assert!(!running.is_finished());
        approve(&stack).await;
        running.await.unwrap().unwrap();
    }
    assert_eq!(mock.started(), 1, "the second answer is a hit");
}

#[tokio::test(start_paused = true)]
async fn the_loop_guard_counts_denied_calls_that_are_sent_again() {
    let mock = MockService::counting();
    let builder = builder().approvals(requests().await);
    let (stack, _server) = alone(builder, vec![wipe("delete_order")], &mock).await;
    let running = start(&stack, "s.delete_order").await;
    decide(&stack, false).await;
    let mut answers = vec![running.await.unwrap().unwrap()];
    for _ in 1..6 {
        answers.push(
            start(&stack, "s.delete_order")
                .await
                .await
                .unwrap()
                .unwrap(),
        );
    }
    let stopped = answers.pop().unwrap().to_text();
    for denied in answers {
        assert!(denied.to_text().contains("is denied by a person"));
    }
    assert!(stopped.contains("failed 5 times"), "{stopped}");
    assert_eq!((mock.started(), stack.loop_guard_stats().answered), (0, 1));
}

#[cfg(feature = "auth")]
#[tokio::test(start_paused = true)]
async fn a_call_that_the_rules_deny_is_not_asked_about() {
    use callward::auth::Policy;
    use callward::auth::rules::Then;

    let mock = MockService::counting();
    let deny = Policy::new(Vec::new(), Then::Deny);
    let builder = builder().authorize(deny).approvals(requests().await);
    let (stack, _server) = alone(builder, vec![wipe("delete_order")], &mock).await;
    let denied = start(&stack, "s.delete_order").await.await.unwrap();
    assert_eq!(denied.unwrap_err().kind, ErrorKind::UnknownTool);
    assert_eq!(stack.approvals().unwrap().list().await.unwrap(), []);
}
