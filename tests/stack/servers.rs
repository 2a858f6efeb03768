//! Servers that come, go, change and fail: one of them never hides another.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::time::Duration;

use callward::router::StrategyName;
use callward::{
    CallRecord, Delivery, ErrorKind, Server, Stack, StackBuilder, ToolError, ToolOutput,
};
use callward_core::{
    BoxFuture, Instances, ServerEvent, ServerId, ToolCall, ToolDefinition, ToolServer,
};
use callward_testkit::{MockServer, MockService};
use futures_util::StreamExt;
use serde_json::{Value, json};

#[expect(
    clippy::needless_pass_by_value,
    reason = "`tool(name, json!({}))` reads better"
)]
fn tool(name: &str, annotations: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations})
}

fn read(name: &str) -> Value {
    tool(name, json!({"readOnlyHint": true}))
}

fn refused() -> ToolError {
    ToolError::new(
        ErrorKind::ConnectFailed,
        Delivery::NotSent,
        "connection refused",
    )
}

/// Starts a stack; a mock server is up from the start.
async fn start(servers: impl IntoIterator<Item = Server>, up: &[&Arc<MockServer>]) -> Stack {
    start_with(Stack::builder(), servers, up).await
}

async fn start_with(
    builder: StackBuilder,
    servers: impl IntoIterator<Item = Server>,
    up: &[&Arc<MockServer>],
) -> Stack {
    let builder = servers
        .into_iter()
        .fold(builder, |builder, server| builder.server(server));
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    for server in up {
        server.emit(&ServerEvent::Up);
    }
    building.await.unwrap().unwrap()
}

/// Lets the scans run until the tools have changed.
async fn settle(changes: &mut (impl StreamExt<Item = ()> + Unpin)) {
    changes.next().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_hides_no_other_and_appears_when_it_comes_up() {
    let good = MockServer::new("good", vec![read("get_a")], MockService::counting());
    let late = MockServer::new("late", vec![read("get_b")], MockService::counting());
    late.set_tools(Err(refused()));
    let stack = start(
        [Server::shared(good.clone()), Server::shared(late.clone())],
        &[&good, &late],
    )
    .await;
    stack.call("good.get_a", json!({})).await.unwrap();
    let error = stack.call("late.get_b", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTool);
    let text = "; server `late` is not connected and may offer it";
    assert!(error.message().ends_with(text), "{error}");
    let status = &stack.servers()[1];
    assert!(
        !status.up && status.last_error.as_ref().unwrap().contains("refused"),
        "{status:?}"
    );

    let mut changes = stack.changes();
    late.set_tools(Ok(vec![read("get_b")]));
    late.emit(&ServerEvent::Up);
    settle(&mut changes).await;
    stack.call("late.get_b", json!({})).await.unwrap();
    assert!(stack.servers()[1].up);
    let error = stack.call("late.get_c", json!({})).await.unwrap_err();
    assert!(!error.message().contains("connected"), "{error}");
}

/// Says on which thread its list is registered.
struct Thread(
    Arc<MockServer>,
    std::sync::mpsc::Sender<std::thread::ThreadId>,
);

impl ToolServer for Thread {
    fn id(&self) -> &ServerId {
        self.0.id()
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        self.0.list_tools()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.0.call(call)
    }

    fn instances(&self) -> Instances {
        let _ = self.1.send(std::thread::current().id());
        Instances::Shared
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_registered_beside_the_threads_that_run_calls() {
    let server = MockServer::new("s", vec![read("get_a")], MockService::counting());
    let (sent, threads) = std::sync::mpsc::channel();
    let server = Server::shared(Arc::new(Thread(server, sent)));
    let stack = Stack::builder().server(server).build().await.unwrap();
    stack.call("s.get_a", json!({})).await.unwrap();
    let here = std::thread::current().id();
    assert!(threads.try_iter().any(|thread| thread != here));
}

#[tokio::test(start_paused = true)]
async fn the_server_that_was_added_first_chooses_its_names_first() {
    for fails in [false, true] {
        let first = MockServer::new("z", vec![read("get_a")], MockService::counting());
        if fails {
            first.set_tools(Err(refused()));
        }
        let other = MockServer::new("a", vec![read("get_a")], MockService::counting());
        let servers = [&first, &other].map(|server| Server::shared(server.clone()).prefix(None));
        let mut builder = Stack::builder();
        for server in servers {
            builder = builder.server(server);
        }
        let building = tokio::spawn(builder.build());
        // the second one lists its tools first
        for server in [&other, &first] {
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
            server.emit(&ServerEvent::Up);
        }
        let stack = building.await.unwrap().unwrap();
        let catalogue = stack.catalogue();
        let owner = catalogue.find("get_a").unwrap().tool().set();
        assert_eq!(owner.as_str(), if fails { "a" } else { "z" });
        assert!(catalogue.find("a__get_a").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_is_tried_again_by_itself() {
    let server = MockServer::new("s", vec![], MockService::counting());
    server.set_tools(Err(refused()));
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    let mut changes = stack.changes();
    server.set_tools(Ok(vec![read("get_a")]));
    settle(&mut changes).await;
    stack.call("s.get_a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_followed() {
    let server = MockServer::new("s", vec![read("get_a")], MockService::counting());
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    let mut changes = stack.changes();
    let before = stack.catalogue().generation();

    server.set_tools(Ok(vec![read("get_b")]));
    server.emit(&ServerEvent::ToolsChanged);
    settle(&mut changes).await;
    assert!(stack.catalogue().generation() > before);
    assert!(stack.call("s.get_a", json!({})).await.is_err());
    stack.call("s.get_b", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_changed_definition_never_serves_the_old_ones_results() {
    let mock = MockService::counting();
    let server = MockServer::new("s", vec![read("get_a")], mock.clone());
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    stack.call("s.get_a", json!({})).await.unwrap();
    let mut changes = stack.changes();
    server.set_tools(Ok(vec![
        json!({"name": "get_a", "description": "now in euros", "annotations": {"readOnlyHint": true}}),
    ]));
    server.emit(&ServerEvent::ToolsChanged);
    settle(&mut changes).await;
    stack.call("s.get_a", json!({})).await.unwrap();
    assert_eq!(mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_contradicting_hints_is_refused_and_the_others_stay() {
    let both = tool(
        "zap",
        json!({"readOnlyHint": true, "destructiveHint": true}),
    );
    let server = MockServer::new("s", vec![both, read("get_a")], MockService::counting());
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    stack.call("s.get_a", json!({})).await.unwrap();
    assert_eq!(
        stack.call("s.zap", json!({})).await.unwrap_err().kind(),
        ErrorKind::UnknownTool
    );
    let catalogue = stack.catalogue();
    assert_eq!(catalogue.refused()[0].tool.as_str(), "zap");
}

#[tokio::test(start_paused = true)]
async fn a_sick_server_is_left_alone_until_it_is_back() {
    let mock = MockService::new(|_, n| async move {
        match n {
            1..=3 => Err(ToolError::new(
                ErrorKind::ConnectionLost,
                Delivery::Unknown,
                "reset",
            )),
            _ => Ok(ToolOutput::text("fine")),
        }
    });
    let add = tool("add", json!({"destructiveHint": false}));
    let server = MockServer::new("s", vec![add], mock.clone());
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    for _ in 0..3 {
        let error = stack.call("s.add", json!({})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    }
    let error = stack.call("s.add", json!({})).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.delivery()),
        (ErrorKind::BreakerOpen, Delivery::NotSent)
    );
    assert!(
        error
            .retry_after()
            .is_some_and(|wait| wait <= Duration::from_secs(30))
    );
    assert_eq!(mock.started(), 3);

    // its connection is back: what tripped the breaker is over
    server.emit(&ServerEvent::Up);
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        stack.call("s.add", json!({})).await.unwrap().to_text(),
        "fine"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_goes_elsewhere_when_its_server_fails() {
    let sick = MockService::new(|_, _| async {
        Err(ToolError::new(
            ErrorKind::ConnectionLost,
            Delivery::Unknown,
            "reset",
        ))
    });
    let one = MockServer::new("one", vec![read("get_a")], sick.clone());
    let two = MockServer::new("two", vec![read("get_a")], MockService::counting());
    let set = || "pair".parse().unwrap();
    // a default router would leave it before its breaker does
    let stack = start_with(
        Stack::builder().strategy(StrategyName::RoundRobin),
        [
            Server::shared(one.clone()).in_set(set()),
            Server::shared(two.clone()).in_set(set()),
        ],
        &[&one, &two],
    )
    .await;
    for id in 0..20 {
        stack.call("pair.get_a", json!({"id": id})).await.unwrap();
    }
    assert_eq!(sick.started(), 3, "none once its breaker was open");
}

#[tokio::test(start_paused = true)]
async fn a_destructive_call_goes_to_a_primary_or_nowhere() {
    let wipe = || vec![tool("wipe", json!({"destructiveHint": true}))];
    let set = || "pair".parse().unwrap();
    let replica = MockServer::new("replica", wipe(), MockService::counting());
    let primary_mock = MockService::new(|_, _| async {
        Err(ToolError::new(
            ErrorKind::ConnectFailed,
            Delivery::NotSent,
            "connection refused",
        ))
    });
    let primary = MockServer::new("primary", wipe(), primary_mock.clone());
    let stack = start(
        [
            Server::shared(replica.clone()).in_set(set()).weight(49),
            Server::shared(primary.clone()).in_set(set()).weight(50),
        ],
        &[&replica, &primary],
    )
    .await;
    for n in 0..10 {
        let record = Arc::new(CallRecord::new());
        let call = stack
            .prepare("pair.wipe", "{}")
            .unwrap()
            .with_record(record.clone());
        let error = stack.run(call).await.unwrap_err();
        if n >= 3 {
            assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
            assert!(error.message().contains("primary has an open breaker"));
        }
        assert!(
            record
                .server()
                .is_none_or(|(server, _)| server.as_str() == "primary")
        );
    }
    assert_eq!(
        primary_mock.started(),
        3,
        "never repeated, and not at all once the breaker is open"
    );
}

#[tokio::test]
async fn a_weight_beyond_a_hundred_does_not_build() {
    let server = MockServer::new("heavy", vec![read("get_a")], MockService::counting());
    let built = Stack::builder()
        .server(Server::shared(server).weight(101))
        .build()
        .await;
    assert_eq!(
        built.unwrap_err().to_string(),
        "server `heavy`: 101 is not a weight: expected a whole number from 0 to 100"
    );
}

#[tokio::test(start_paused = true)]
async fn an_endless_name_is_not_repeated_to_who_sent_it() {
    let server = MockServer::new("s", vec![read("get_a")], MockService::counting());
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    let error = stack.prepare(&"ü".repeat(1_000_000), "{}").unwrap_err();
    assert!(error.message().len() < 500, "{}", error.message().len());
    assert!(error.message().contains("1 tool is known"));
}

#[tokio::test(start_paused = true)]
async fn an_endless_call_deadline_is_none() {
    let server = MockServer::new("s", vec![read("get_a")], MockService::counting());
    let building = tokio::spawn(
        Stack::builder()
            .server(Server::shared(server.clone()))
            .call_deadline(Duration::MAX)
            .startup_timeout(Duration::MAX)
            .build(),
    );
    tokio::task::yield_now().await;
    server.emit(&ServerEvent::Up);
    let stack = building.await.unwrap().unwrap();
    assert_eq!(stack.prepare("s.get_a", "{}").unwrap().deadline(), None);
    stack.call("s.get_a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_destructive_call_that_was_prepared_is_not_sent_once_its_tool_is_gone() {
    let mock = MockService::counting();
    let wipe = tool("wipe", json!({"destructiveHint": true}));
    let server = MockServer::new("s", vec![wipe], mock.clone());
    let stack = start([Server::shared(server.clone())], &[&server]).await;
    let call = stack.prepare("s.wipe", "{}").unwrap();
    let mut changes = stack.changes();
    server.set_tools(Ok(vec![read("get_a")]));
    server.emit(&ServerEvent::ToolsChanged);
    settle(&mut changes).await;
    let error = stack.run(call).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    assert_eq!(mock.started(), 0);
}
