//! Servers, and calls that are taken down.

use std::sync::Arc;

use callward::core::ServerEvent;
use callward::router::StrategyName;
use callward::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, Server, SessionId, Stack, StackBuilder,
    ToolCall, ToolError, ToolOutput, ToolServer, Trail,
};
use callward_core::trail::{Decision, Stage};
use callward_testkit::{MockServer, MockService};
use serde_json::{Value, json};

/// A tool of each effect.
pub(crate) fn tools() -> Vec<Value> {
    let tool = |name: &str, hints: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
    vec![
        tool("read", json!({"readOnlyHint": true})),
        tool("rare", json!({"readOnlyHint": true, "rateLimitHint": 12})),
        tool(
            "put",
            json!({"idempotentHint": true, "destructiveHint": false}),
        ),
        tool("add", json!({"destructiveHint": false})),
        tool("drop", json!({"destructiveHint": true})),
    ]
}

pub(crate) fn failure(kind: ErrorKind, delivery: Delivery) -> ToolError {
    ToolError::new(kind, delivery, "it failed")
}

/// A service that fails its first calls so, and then answers.
pub(crate) fn failing(times: usize, kind: ErrorKind, delivery: Delivery) -> MockService {
    MockService::new(move |_, n| async move {
        match n <= times {
            true => Err(failure(kind, delivery)),
            false => Ok(ToolOutput::text("done")),
        }
    })
}

/// Builds a stack of these servers in one set, all of them up; those that may take anything.
pub(crate) async fn stack(builder: StackBuilder, services: &[(&str, MockService)]) -> Stack {
    let servers: Vec<_> = services
        .iter()
        .map(|(id, service)| MockServer::new(id, tools(), service.clone()))
        .collect();
    build(builder, servers, |_, server| server).await
}

pub(crate) async fn build(
    builder: StackBuilder,
    servers: Vec<Arc<MockServer>>,
    with: impl Fn(&str, Server) -> Server,
) -> Stack {
    let mut builder = builder.strategy(StrategyName::RoundRobin);
    for server in &servers {
        let added = Server::shared(server.clone()).in_set("set".parse().unwrap());
        builder = builder.server(with(server.id().as_str(), added));
    }
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    for server in &servers {
        server.emit(&ServerEvent::Up);
    }
    building.await.unwrap().unwrap()
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
    let trail = Trail::observed(&call, &record, Some(&result));
    for reported in &trail.decisions {
        assert!(
            reported.stage.verdicts().contains(&reported.verdict),
            "{reported:?}"
        );
    }
    // reading what was written gives the same, but for how routers decided
    let read: Trail = serde_json::from_value(serde_json::to_value(&trail).unwrap()).unwrap();
    assert_eq!(read.to_line(), trail.to_line());
    let line = Trail::observed_line(call.tool(), call.applied(), &record, Some(&result));
    assert_eq!(line, trail.to_line());
    trail
}

/// The decisions without times and reasons, but for what the plan says of itself.
pub(crate) fn steps(trail: &Trail) -> Vec<String> {
    let step = |reported: &Decision| {
        let mut step = reported.stage.to_string();
        if let Some(attempt) = reported.attempt {
            step.push_str(&format!(
                "#{attempt}{}",
                if reported.beside { "+" } else { "" }
            ));
        }
        step.push_str(&format!(":{}", reported.verdict));
        if let Some(server) = &reported.server {
            step.push_str(&format!("@{server}"));
        }
        step
    };
    trail
        .decisions
        .iter()
        .filter(|reported| reported.stage > Stage::Confirm)
        .map(step)
        .collect()
}

/// Why the stage decided as it did, the last time.
pub(crate) fn why(trail: &Trail, stage: Stage) -> String {
    let reported = trail.of(stage).last();
    reported
        .map(|reported| reported.reason.to_string())
        .unwrap_or_default()
}
