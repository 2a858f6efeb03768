//! What the tests share: servers that come up, calls, and how they failed.

use std::sync::Arc;

use callward::core::ServerEvent;
use callward::router::StrategyName;
use callward::{
    CallRecord, Delivery, ErrorKind, Server, Stack, StackBuilder, ToolError, ToolOutput, ToolServer,
};
use callward_testkit::{MockServer, MockService};
use serde_json::{Value, json};

pub(crate) fn tool(name: &str, hints: impl Into<Value>) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints.into()})
}

pub(crate) fn read(name: &str) -> Value {
    tool(name, json!({"readOnlyHint": true}))
}

/// A tool of which each call adds something.
pub(crate) fn write(name: &str) -> Value {
    tool(name, json!({"destructiveHint": false}))
}

pub(crate) fn wipe(name: &str) -> Value {
    tool(name, json!({"destructiveHint": true}))
}

pub(crate) fn failure(kind: ErrorKind, delivery: Delivery) -> ToolError {
    ToolError::new(kind, delivery, "it failed")
}

pub(crate) fn refused() -> ToolError {
    failure(ErrorKind::ConnectFailed, Delivery::NotSent)
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

/// Builds a stack; these of its servers come up while it starts.
pub(crate) async fn up(builder: StackBuilder, servers: &[&Arc<MockServer>]) -> Stack {
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    for server in servers {
        server.emit(&ServerEvent::Up);
    }
    building.await.unwrap().unwrap()
}

/// Builds a stack of one server, `s`, with these tools.
pub(crate) async fn alone(
    builder: StackBuilder,
    tools: Vec<Value>,
    service: &MockService,
) -> (Stack, Arc<MockServer>) {
    let server = MockServer::new("s", tools, service.clone());
    let stack = up(builder.server(Server::shared(server.clone())), &[&server]).await;
    (stack, server)
}

/// Builds a stack of these servers in one set, `set`; calls go to them in turns.
pub(crate) async fn in_set(
    builder: StackBuilder,
    servers: &[Arc<MockServer>],
    with: impl Fn(&str, Server) -> Server,
) -> Stack {
    let mut builder = builder.strategy(StrategyName::RoundRobin);
    for server in servers {
        let added = Server::shared(server.clone()).in_set("set".parse().unwrap());
        builder = builder.server(with(server.id().as_str(), added));
    }
    up(builder, &servers.iter().collect::<Vec<_>>()).await
}

/// Makes a call, and returns what is recorded of it too.
pub(crate) async fn recorded(
    stack: &Stack,
    tool: &str,
    arguments: impl ToString,
) -> (Result<ToolOutput, ToolError>, Arc<CallRecord>) {
    let record = Arc::new(CallRecord::new());
    let call = stack.prepare(tool, arguments.to_string()).unwrap();
    let answer = stack.run(call.with_record(record.clone())).await;
    (answer, record)
}

/// Makes a call that fails.
pub(crate) async fn fails(stack: &Stack, tool: &str) -> ToolError {
    stack.call(tool, json!({})).await.unwrap_err()
}

/// A runtime whose clock passes when all wait.
pub(crate) fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Lets tasks in the background take some turns.
pub(crate) async fn turns() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "texts, errors and explanations, owned or not"
)]
pub(crate) fn has(text: impl ToString, parts: &[&str]) {
    let text = text.to_string();
    for part in parts {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}
