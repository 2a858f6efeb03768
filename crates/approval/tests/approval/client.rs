//! Clients that decide by themselves, and calls that only some may approve.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callward_approval::{ApprovalError, ApprovalLayer, State};
use callward_core::{
    Approver, Ask, BoxFuture, CallClient, CallRecord, ClientCapabilities, ClientMethod, ClientPeer,
    ClientRefusal, ConfirmOutcome, Delivery, ErrorKind, OutputStatus, Principal, ToolCall,
};
use callward_testkit::MockClient;
use tokio::time::{Instant, advance};
use tower::Layer;

use crate::bed::{Bed, approval, call, decision, settle};

/// A bed whose layer is changed so.
async fn bed(change: impl FnOnce(ApprovalLayer) -> ApprovalLayer) -> Bed {
    let mut bed = Bed::new().await;
    let layer = change(ApprovalLayer::from(bed.approvals.clone()));
    bed.service = layer.layer(bed.server.clone());
    bed
}

fn by_client(layer: ApprovalLayer) -> ApprovalLayer {
    layer.by(Approver::Client)
}

fn asked_by_rule(by: Option<Approver>, roles: &[&str]) -> ToolCall {
    let mut call = call("{}");
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    let rule = "careful".into();
    call.context_mut().ask = Some(Arc::new(Ask { rule, by, roles }));
    call
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_client_decides_where_it_counts() {
    for (answer, state, outcome) in [
        (
            r#"{"action":"accept","content":{"approve":true}}"#,
            State::Succeeded,
            ConfirmOutcome::Approved,
        ),
        (
            r#"{"action":"decline"}"#,
            State::Denied,
            ConfirmOutcome::Denied,
        ),
        ("{}", State::Withdrawn, ConfirmOutcome::Withdrawn),
    ] {
        let bed = bed(by_client).await;
        let (client, call) = MockClient::answering(call(r#"{"id":7}"#), answer);
        let record = Arc::new(CallRecord::new());
        let output = bed.run(call.with_record(record.clone())).await;
        let runs = state == State::Succeeded;
        assert_eq!(output.unwrap().is_error(), !runs);
        assert_eq!(bed.server.started(), usize::from(runs));
        assert_eq!(bed.states().await, [state]);
        let questions = client.questions();
        assert_eq!(questions.len(), 1);
        let question = String::from_utf8(questions[0].to_vec()).unwrap();
        assert!(question.contains(r#"{\"id\":7}"#), "{question}");
        let confirmation = record.facts().confirmation.unwrap();
        assert_eq!(confirmation.outcome, outcome);
        // no server asked for it, so that the call is as any other
        let seen = bed.server.seen();
        assert!(seen.iter().all(|call| !call.has_asked()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_a_client_counts_only_where_an_operator_says_so() {
    let bed = Bed::new().await;
    let yes = r#"{"action":"accept","content":{"approve":true}}"#;
    let (client, call) = MockClient::answering(call("{}"), yes);
    assert_eq!(approval(&bed.run(call).await)["state"], "waiting");
    assert_eq!((client.questions().len(), bed.server.started()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_ask_gets_an_operator_or_a_refusal_or_advice() {
    let operators = bed(by_client).await;
    let waits = operators.run(call("{}")).await;
    assert_eq!(approval(&waits)["state"], "waiting");

    let alone = bed(|layer| by_client(layer).without_operators()).await;
    let error = alone.run(call("{}")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.delivery),
        (ErrorKind::Unauthorized, Delivery::NotSent)
    );
    assert_eq!(alone.states().await, []);

    let advice = bed(ApprovalLayer::advisory).await;
    assert!(!advice.run(call("{}")).await.unwrap().is_error());
    assert_eq!(advice.server.started(), 1);
    // a rule is more than advice
    for by in [None, Some(Approver::Client), Some(Approver::Operator)] {
        let error = advice.run(asked_by_rule(by, &[])).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unauthorized);
    }
    let (client, call) = MockClient::answering(call("{}"), r#"{"action":"decline"}"#);
    assert_eq!(approval(&advice.run(call).await)["state"], "denied");
    assert_eq!((client.questions().len(), advice.server.started()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_rule_says_who_approves_and_with_which_role() {
    let bed = bed(by_client).await;
    let yes = r#"{"action":"accept","content":{"approve":true}}"#;
    let asked = asked_by_rule(Some(Approver::Operator), &["security", "owner"]);
    let (client, call) = MockClient::answering(asked, yes);
    let running = bed.start(call).await;
    assert_eq!(client.questions().len(), 0);
    let request = bed.pending().await;
    assert!(request.asked.reason.contains("`careful`"));
    for roles in [vec![], vec!["operator".to_owned()]] {
        let mut decision = decision(true, None);
        decision.roles = roles;
        let refused = bed.approvals.decide(&request.id, decision).await;
        assert!(matches!(refused, Err(ApprovalError::LacksRole(_))));
    }
    let mut decision = decision(true, None);
    decision.roles = vec!["x".to_owned(), "owner".to_owned()];
    bed.approvals.decide(&request.id, decision).await.unwrap();
    assert!(!running.await.unwrap().unwrap().is_error());
    assert_eq!(bed.server.started(), 1);
}

/// A client that never answers.
#[derive(Default)]
struct Silent(AtomicUsize);

impl ClientPeer for Silent {
    fn ask(&self, _: ClientMethod, _: Bytes) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(pending())
    }
}

impl Silent {
    fn calls(self: &Arc<Self>) -> ToolCall {
        let mut call = call("{}");
        let context = call.context_mut();
        context.capabilities = ClientCapabilities::parse(br#"{"elicitation":{}}"#);
        context.client = Some(CallClient::new(self.clone(), false));
        call
    }
}

#[tokio::test(start_paused = true)]
async fn equal_calls_ask_a_client_once_and_an_operator_may_decide_first() {
    let bed = bed(by_client).await;
    let client = Arc::new(Silent::default());
    let one = bed.start(client.calls()).await;
    let two = bed.start(client.calls()).await;
    assert_eq!(client.0.load(Ordering::SeqCst), 1);
    // the principal itself cannot decide through an operator's channel
    let mut own = decision(true, None);
    own.by = Principal::new("ada");
    let id = bed.pending().await.id.clone();
    let refused = bed.approvals.decide(&id, own).await;
    assert!(matches!(
        refused,
        Err(ApprovalError::DecidedByTheOneThatAsks)
    ));
    bed.decide(true).await;
    let outputs = [one.await.unwrap(), two.await.unwrap()];
    let ran = outputs
        .iter()
        .filter(|output| !output.as_ref().unwrap().is_error());
    assert_eq!((ran.count(), bed.server.started()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_is_asked_again() {
    let bed = bed(by_client).await;
    let client = Arc::new(Silent::default());
    bed.start(client.calls()).await.abort();
    settle().await;
    let again = bed.start(client.calls()).await;
    assert_eq!(client.0.load(Ordering::SeqCst), 2);
    assert_eq!(bed.states().await, [State::Pending]);
    // and its request ends without an answer
    advance(Duration::from_secs(15 * 60)).await;
    assert_eq!(approval(&again.await.unwrap())["state"], "expired");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_rounds_is_asked_to_call_again() {
    let bed = Bed::new().await;
    let mut call = call("{}");
    call.context_mut().takes_rounds = true;
    let round = bed.run(call.clone()).await.unwrap();
    assert_eq!(round.status(), OutputStatus::Waits);
    bed.decide(true).await;
    assert!(!bed.run(call).await.unwrap().is_error());
    assert_eq!(bed.server.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_waits_and_leaves_requests_open() {
    let bed = Bed::new().await;
    let mut modern = call("2");
    modern.context_mut().takes_rounds = true;
    let calls = [call("1"), modern.clone()];
    let mut running = Vec::new();
    for call in calls {
        running.push(bed.start(call).await);
    }
    let began = Instant::now();
    bed.approvals.close();
    for call in running {
        assert_eq!(approval(&call.await.unwrap())["state"], "waiting");
    }
    assert_eq!(approval(&bed.run(modern).await)["state"], "waiting");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(bed.states().await, [State::Pending; 2]);
}
