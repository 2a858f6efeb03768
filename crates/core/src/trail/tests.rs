//! Tests of the record and of the words.

use std::sync::Arc;

use super::record::CallFacts;
use super::*;
use crate::{CallRecord, RouteDecision, ServerId, ToolCall};

fn decision(call: &ToolCall, chosen: Option<&str>) -> Arc<RouteDecision> {
    let mut decision = RouteDecision::new(call, "round_robin");
    decision.chosen = chosen.map(|id| ServerId::new(id).unwrap());
    decision.reason = "in turn";
    Arc::new(decision)
}

fn started() -> (ToolCall, CallRecord) {
    let tool = Tool::read_only("read").unwrap();
    (ToolCall::new(tool, ""), CallRecord::new())
}

#[test]
fn of_each_stage_the_first_decisions_and_the_last_are_kept() {
    let (call, record) = started();
    for number in 0..20 {
        record.note_route(&decision(&call, Some(&format!("s{number}"))));
    }
    record.note_route(&decision(&call, None));
    let facts = record.facts();
    let chosen: Vec<_> = facts.decisions.iter().map(|d| d.server.as_ref()).collect();
    assert_eq!(chosen.len(), CallFacts::MAX_OF_A_STAGE);
    assert_eq!(chosen[14].unwrap().as_str(), "s14");
    assert_eq!((chosen[15], facts.left_out), (None, 5));
    // the server is that of the last decision that chose one
    let (server, reason) = facts.server.unwrap();
    assert_eq!((server.as_str(), reason), ("s19", "in turn"));
}

#[test]
fn each_attempt_finds_its_own_decision() {
    let (mut call, record) = started();
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
