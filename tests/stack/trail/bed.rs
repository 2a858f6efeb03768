//! Servers, and calls that are taken down.

use std::sync::Arc;

use callward::{
    CallRecord, Caller, Principal, Server, SessionId, Stack, StackBuilder, ToolCall, Trail,
};
use callward_core::trail::{Decision, Stage};
use callward_testkit::{MockServer, MockService};
use serde_json::json;

use crate::bed::{in_set, read, tool, wipe, write};

/// Builds a stack of these servers in one set, with a tool of each effect.
pub(crate) async fn stack(builder: StackBuilder, services: &[(&str, MockService)]) -> Stack {
    stack_with(builder, services, |server| server).await
}

pub(crate) async fn stack_with(
    builder: StackBuilder,
    services: &[(&str, MockService)],
    with: impl Fn(Server) -> Server,
) -> Stack {
    let rare = json!({"readOnlyHint": true, "rateLimitHint": 12});
    let tools = vec![read("read"), tool("rare", rare), write("add"), wipe("drop")];
    let server =
        |(id, service): &(&str, MockService)| MockServer::new(id, tools.clone(), service.clone());
    let servers: Vec<_> = services.iter().map(server).collect();
    in_set(builder, &servers, |_, server| with(server)).await
}

pub(crate) fn prepare(stack: &Stack, tool: &str) -> (ToolCall, Arc<CallRecord>) {
    let record = Arc::new(CallRecord::new());
    let call = stack.prepare(&format!("set.{tool}"), "{}").unwrap();
    let caller = Caller::new(Principal::new("ada")).with_session(SessionId::new("1"));
    let call = call.with_caller(Arc::new(caller));
    (call.with_record(record.clone()), record)
}

/// Makes a call, and tells what happened to it.
pub(crate) async fn run(stack: &Stack, tool: &str) -> Trail {
    let (call, record) = prepare(stack, tool);
    let result = stack.run(call.clone()).await;
    let trail = Trail::observed(call.tool(), call.applied(), &record.facts(), Some(&result));
    for reported in &trail.decisions {
        let known = reported.stage.verdicts();
        assert!(known.contains(&reported.verdict), "{reported:?}");
    }
    // reading what was written gives the same, but for how routers decided
    let read: Trail = serde_json::from_value(serde_json::to_value(&trail).unwrap()).unwrap();
    assert_eq!(read.to_line(), trail.to_line());
    let line = Trail::observed_line(call.tool(), call.applied(), &record.facts(), Some(&result));
    assert_eq!(line, trail.to_line());
    trail
}

/// The decisions without times and reasons, but for what the plan says of itself.
pub(crate) fn steps(trail: &Trail) -> Vec<String> {
    let step = |reported: &Decision| {
        let mut step = reported.stage.to_string();
        if let Some(attempt) = reported.attempt {
            let beside = if reported.beside { "+" } else { "" };
            step.push_str(&format!("#{attempt}{beside}"));
        }
        step.push_str(&format!(":{}", reported.verdict));
        if let Some(server) = &reported.server {
            step.push_str(&format!("@{server}"));
        }
        step
    };
    let decisions = trail.decisions.iter();
    let after_plan = decisions.filter(|reported| reported.stage > Stage::Confirm);
    after_plan.map(step).collect()
}

/// Why the stage decided as it did, the last time.
pub(crate) fn why(trail: &Trail, stage: Stage) -> String {
    let last = trail.of(stage).last();
    last.map(|one| one.reason.to_string()).unwrap_or_default()
}
