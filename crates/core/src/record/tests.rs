//! Tests of the record.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::{
    Annotations, CallPlan, Profile, ReplicaSetId, Resolved, Source, Tool, ToolCall, ToolDefinition,
};

fn call() -> ToolCall {
    let listed = br#"{"name":"read","inputSchema":{"type":"object"}}"#;
    let definition = ToolDefinition::from_json(Bytes::from_static(listed)).unwrap();
    let resolved = Resolved::from_single(Annotations::default(), Source::Declared);
    let plan = CallPlan::derive(&resolved, &Profile::standard());
    let set = ReplicaSetId::new("orders").unwrap();
    ToolCall::new(Arc::new(Tool::new(set, definition, resolved, plan)), "")
}

fn decision(call: &ToolCall, chosen: Option<&str>) -> Arc<RouteDecision> {
    let mut decision = RouteDecision::new(call, "round_robin");
    decision.chosen = chosen.map(|id| ServerId::new(id).unwrap());
    decision.reason = "in turn";
    Arc::new(decision)
}

#[test]
fn the_server_is_that_of_the_last_decision_that_chose_one() {
    let (call, record) = (call(), CallRecord::new());
    assert_eq!(record.server(), None);
    record.note_route(&decision(&call, Some("a")));
    record.note_route(&decision(&call, Some("b")));
    record.note_route(&decision(&call, None));
    let (server, reason) = record.server().unwrap();
    assert_eq!((server.as_str(), reason), ("b", "in turn"));
    // a layer that knows better, such as which of two attempts won, may override it
    record.set_server(ServerId::new("a").unwrap(), "won");
    assert_eq!(record.server().unwrap().1, "won");
    assert_eq!(record.routes().len(), 3);
}

#[test]
fn a_record_keeps_the_first_decisions_and_the_last_and_counts_the_rest() {
    let (call, record) = (call(), CallRecord::new());
    for number in 0..20 {
        record.note_route(&decision(&call, Some(&format!("s{number}"))));
    }
    let chosen: Vec<_> = record.routes().iter().map(|d| d.chosen.clone()).collect();
    assert_eq!(chosen.len(), CallRecord::MOST_OF_A_STAGE);
    assert_eq!(chosen[14].as_ref().unwrap().as_str(), "s14");
    assert_eq!(chosen[15].as_ref().unwrap().as_str(), "s19");
    assert_eq!(record.decisions().1, 4);
}

#[test]
fn each_attempt_finds_its_own_decision() {
    let (mut call, record) = (call(), CallRecord::new());
    let first = call.attempt().clone();
    record.note_route(&decision(&call, Some("a")));
    record.note_route(&decision(&call, Some("b")));
    call.attempt_mut().elsewhere_only = true;
    let beside = call.attempt().clone();
    record.note_route(&decision(&call, Some("c")));
    call.attempt_mut().advance(None);
    let second = call.attempt().clone();
    assert_eq!(record.route_of(&second), None);
    record.note_route(&decision(&call, None));
    let chosen = |attempt| record.route_of(attempt).unwrap().chosen.clone();
    assert_eq!(chosen(&first).unwrap().as_str(), "b");
    assert_eq!(chosen(&beside).unwrap().as_str(), "c");
    assert_eq!(chosen(&second), None);
}

#[test]
fn only_a_record_for_counting_wants_no_decisions_until_somebody_asks() {
    assert!(CallRecord::new().wants_decisions() && CallRecord::default().wants_decisions());
    let counting = CallRecord::for_counting();
    assert!(!counting.wants_decisions());
    counting.ask_for_decisions();
    assert!(counting.wants_decisions());
}
