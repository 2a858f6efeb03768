//! Breakers in the stack, and the pauses between listings that fail.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::breaker::{BreakerConfig, BreakerState, Subject};
use callward::core::{BoxFuture, BoxStream, ServerEvent};
use callward::{
    Delivery, ErrorKind, Server, ServerId, Stack, ToolCall, ToolDefinition, ToolError, ToolName,
    ToolOutput, ToolServer,
};
use callward_testkit::{MockServer, MockService};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

/// What a listing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Fails,
    Hangs,
    Works,
}

/// A server with six tools that write and one that reads, whose listings and calls are scripted.
struct Scripted {
    id: ServerId,
    listing: Mutex<Listing>,
    listed: Mutex<Vec<Instant>>,
    reachable: Mutex<bool>,
    calls: AtomicUsize,
    events: Mutex<Option<tokio::sync::mpsc::UnboundedReceiver<ServerEvent>>>,
}

impl Scripted {
    fn new(listing: Listing) -> Arc<Self> {
        Arc::new(Self {
            id: ServerId::new("s").unwrap(),
            listing: Mutex::new(listing),
            listed: Mutex::default(),
            reachable: Mutex::new(true),
            calls: AtomicUsize::new(0),
            events: Mutex::default(),
        })
    }

    /// Gives it events, which it has none of otherwise.
    fn with_events(&self) -> tokio::sync::mpsc::UnboundedSender<ServerEvent> {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        *self.events.lock() = Some(receiver);
        sender
    }

    /// Returns when it was listed, in seconds since the first time.
    fn listed_at(&self) -> Vec<f64> {
        let listed = self.listed.lock();
        let since = |at: &Instant| (*at - listed[0]).as_secs_f64();
        listed.iter().map(since).collect()
    }
}

fn refused() -> ToolError {
    let text = "connection refused";
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, text)
}

impl ToolServer for Scripted {
    fn id(&self) -> &ServerId {
        &self.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        self.listed.lock().push(Instant::now());
        let listing = *self.listing.lock();
        Box::pin(async move {
            match listing {
                Listing::Fails => Err(refused()),
                Listing::Hangs => std::future::pending().await,
                Listing::Works => Ok((0..6)
                    .map(|n| {
                        let tool = json!({
                            "name": format!("add_{n}"),
                            "annotations": {"destructiveHint": false},
                        });
                        tool.to_string()
                    })
                    .chain([r#"{"name":"get_it","annotations":{"readOnlyHint":true}}"#.into()])
                    .map(|tool: String| ToolDefinition::from_json(tool).unwrap())
                    .collect()),
            }
        })
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        let answer = if *self.reachable.lock() {
            Ok(())
        } else {
            Err(refused())
        };
        Box::pin(std::future::ready(answer))
    }

    fn call(&self, _: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = if *self.reachable.lock() {
            Ok(ToolOutput::text("fine"))
        } else {
            Err(refused())
        };
        Box::pin(std::future::ready(answer))
    }

    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        let mut receiver = self.events.lock().take()?;
        Some(Box::pin(futures_util::stream::poll_fn(move |cx| {
            receiver.poll_recv(cx)
        })))
    }
}

async fn start(server: &Arc<Scripted>) -> Stack {
    Stack::builder()
        .server(Server::shared(server.clone()))
        .build()
        .await
        .unwrap()
}

fn state(stack: &Stack, subject: &Subject) -> BreakerState {
    let all = stack.breakers();
    all.iter()
        .find(|one| one.subject == *subject)
        .unwrap()
        .state
}

#[tokio::test(start_paused = true)]
async fn a_failed_listing_is_retried_after_growing_pauses() {
    let server = Scripted::new(Listing::Fails);
    let stack = start(&server).await;
    sleep(Duration::from_secs(200)).await;
    assert_eq!(
        server.listed_at(),
        [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 63.5, 123.5, 183.5]
    );
    *server.listing.lock() = Listing::Works;
    sleep(Duration::from_secs(60)).await;
    stack.call("s.add_0", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_back_is_listed_at_once() {
    let server = Scripted::new(Listing::Fails);
    let events = server.with_events();
    events.send(ServerEvent::Up).unwrap();
    let stack = start(&server).await;
    sleep(Duration::from_secs(10)).await;
    *server.listing.lock() = Listing::Works;
    let mut changes = stack.changes();
    let before = Instant::now();
    events.send(ServerEvent::Up).unwrap();
    futures_util::StreamExt::next(&mut changes).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    stack.call("s.add_0", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changes_all_the_time_does_not_shorten_the_pauses() {
    let server = Scripted::new(Listing::Fails);
    let events = server.with_events();
    events.send(ServerEvent::Up).unwrap();
    let _stack = start(&server).await;
    for _ in 0..50 {
        events.send(ServerEvent::ToolsChanged).unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(server.listed_at(), [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5]);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_hangs_is_given_up_and_says_after_how_long() {
    for (timeout, secs) in [(None, 60), (Some(7), 7), (Some(1), 5)] {
        let server = Scripted::new(Listing::Hangs);
        let mut builder = Stack::builder()
            .server(Server::shared(server.clone()))
            .startup_timeout(Duration::from_secs(1));
        if let Some(secs) = timeout {
            builder = builder.listing_timeout(Duration::from_secs(secs));
        }
        let stack = builder.build().await.unwrap();
        sleep(Duration::from_secs(secs)).await;
        let error = stack.servers()[0].last_error.clone().unwrap();
        assert!(error.contains(&format!("within {secs} s")), "{error}");
        assert!(error.contains("never below 5 s"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_probed_by_pings_and_by_no_write() {
    let server = Scripted::new(Listing::Works);
    let stack = start(&server).await;
    *server.reachable.lock() = false;
    *server.listing.lock() = Listing::Fails;
    for n in 0..5 {
        let error = stack
            .call(&format!("s.add_{n}"), json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectFailed);
    }
    // the sixth tool was never called, and its server is not asked
    let error = stack.call("s.add_5", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
    assert!(error.message().contains("server `s`"), "{error}");
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Open);
    let explained = stack.explain("s.add_5").unwrap().to_string();
    assert!(explained.contains("its breaker"), "{explained}");

    // the first probe fails, the second one finds it
    sleep(Duration::from_secs(15)).await;
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Open);
    *server.reachable.lock() = true;
    *server.listing.lock() = Listing::Works;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Closed);
    assert_eq!(server.calls.load(Ordering::Relaxed), 5);
    stack.call("s.add_5", json!({})).await.unwrap();
}

/// A server whose tools `sick_0` to `sick_2` fail in this way, and whose other one is well.
async fn with_sick_tools(kind: ErrorKind, delivery: Delivery) -> (Stack, MockService) {
    let mock = MockService::new(move |call: ToolCall, _| async move {
        tokio::task::yield_now().await;
        if call.tool().name().as_str().starts_with("sick") {
            Err(ToolError::new(kind, delivery, "scripted"))
        } else {
            Ok(ToolOutput::text("fine"))
        }
    });
    let tools = ["sick_0", "sick_1", "sick_2", "well"]
        .map(|name| json!({"name": name, "annotations": {"destructiveHint": false}}));
    (stack_of(tools.to_vec(), &mock).await, mock)
}

/// A stack of one server, `s`, with these tools.
async fn stack_of(tools: Vec<Value>, mock: &MockService) -> Stack {
    let server = MockServer::new("s", tools, mock.clone());
    let building = tokio::spawn(
        Stack::builder()
            .server(Server::shared(server.clone()))
            .build(),
    );
    tokio::task::yield_now().await;
    server.emit(&ServerEvent::Up);
    building.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn sick_tools_leave_the_server_alone_however_they_fail() {
    for (kind, delivery) in [
        (ErrorKind::ServerFault, Delivery::Answered),
        (ErrorKind::ConnectionLost, Delivery::Unknown),
    ] {
        let (stack, _) = with_sick_tools(kind, delivery).await;
        for _ in 0..20 {
            for tool in ["s.sick_0", "s.sick_1", "s.sick_2"] {
                stack.call(tool, json!({})).await.unwrap_err();
            }
            stack.call("s.well", json!({})).await.unwrap();
        }
        assert_eq!(state(&stack, &Subject::Server), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_at_a_tool_that_drops_its_connections_blocks_no_neighbour() {
    let (stack, mock) = with_sick_tools(ErrorKind::ConnectionLost, Delivery::Unknown).await;
    let sick = Subject::Tool(ToolName::new("sick_0").unwrap());
    // all of them are under way before the first fails, and are one event
    for (crowd, expected) in [
        BreakerState::Closed,
        BreakerState::Closed,
        BreakerState::Open,
    ]
    .into_iter()
    .enumerate()
    {
        let calls = (0..24).map(|_| stack.call("s.sick_0", json!({})));
        let failed = futures_util::future::join_all(calls).await;
        assert!(failed.iter().all(Result::is_err));
        assert_eq!(mock.started(), 24 * (crowd + 1));
        assert_eq!(state(&stack, &Subject::Server), BreakerState::Closed);
        assert_eq!(state(&stack, &sick), expected, "crowd {crowd}");
        // what several lose within a moment is one event, too
        sleep(Duration::from_millis(100)).await;
    }
    for _ in 0..40 {
        stack.call("s.well", json!({})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_one_poisonous_call_open_no_breaker() {
    for (kind, delivery) in [
        (ErrorKind::ConnectFailed, Delivery::NotSent),
        (ErrorKind::ConnectionLost, Delivery::Unknown),
        (ErrorKind::ServerFault, Delivery::Answered),
    ] {
        let mock = MockService::new(move |call: ToolCall, _| async move {
            match call.arguments() {
                b"{}" => Ok(ToolOutput::text("fine")),
                _ => Err(ToolError::new(kind, delivery, "scripted")),
            }
        });
        let tool = json!({"name": "get_it", "annotations": {"readOnlyHint": true}});
        let stack = stack_of(vec![tool], &mock).await;
        stack
            .call("s.get_it", json!({"poison": 1}))
            .await
            .unwrap_err();
        assert_eq!(mock.started(), 3, "{kind}");
        stack.call("s.get_it", json!({})).await.unwrap();
        let tool = Subject::Tool(ToolName::new("get_it").unwrap());
        assert_eq!(state(&stack, &tool), BreakerState::Closed, "{kind}");
        // three calls do open it
        for key in 0..3 {
            stack
                .call("s.get_it", json!({"poison": key}))
                .await
                .unwrap_err();
        }
        assert_eq!(state(&stack, &tool), BreakerState::Open, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waiting_for_a_breaker_is_answered_when_the_server_is_back() {
    let server = Scripted::new(Listing::Works);
    let events = server.with_events();
    events.send(ServerEvent::Up).unwrap();
    let stack = start(&server).await;
    *server.reachable.lock() = false;
    for number in 0..5 {
        let call = stack.prepare(&format!("s.add_{number}"), "{}").unwrap();
        let deadline = Instant::now() + Duration::from_millis(1);
        let outcome = stack.run(call.with_deadline(deadline.into_std())).await;
        outcome.unwrap_err();
    }
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Open);
    let began = Instant::now();
    let deadline = began + Duration::from_secs(60);
    let read = stack.prepare("s.get_it", "{}").unwrap();
    let waiting = tokio::spawn(stack.run(read.with_deadline(deadline.into_std())));
    sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    *server.reachable.lock() = true;
    events.send(ServerEvent::Up).unwrap();
    waiting.await.unwrap().unwrap();
    // the breaker alone would have let nothing through for 10 s
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_for_the_probe_of_a_tool_are_answered_soon_after_it_is() {
    for millis in [1, 200, 2_000, 20_000] {
        let mock = MockService::new(move |_: ToolCall, _| async move {
            sleep(Duration::from_millis(millis)).await;
            Ok(ToolOutput::text("fine"))
        });
        let tool = json!({"name": "get_it", "annotations": {"readOnlyHint": true}});
        let server = MockServer::new("s", vec![tool], mock.clone());
        let building = Stack::builder()
            .server(Server::shared(server.clone()))
            .call_deadline(Duration::from_secs(600));
        let building = tokio::spawn(building.build());
        tokio::task::yield_now().await;
        server.emit(&ServerEvent::Up);
        let stack = building.await.unwrap().unwrap();
        let (id, name) = (
            ServerId::new("s").unwrap(),
            ToolName::new("get_it").unwrap(),
        );
        let circuit = stack.breaker_set().circuit(&id, &name);
        for _ in 0..3 {
            circuit.clone().admit().unwrap().fail(&"down");
        }
        let began = Instant::now();
        let waiting = (0..20).map(|key| stack.call("s.get_it", json!({"key": key})));
        for answer in futures_util::future::join_all(waiting).await {
            answer.unwrap();
        }
        // open for 30 s; then the probe, and all others, which ask again every second
        let most = Duration::from_millis(30_000 + 2 * millis + 2_000);
        let took = began.elapsed();
        assert!(took < most, "{millis} ms: {took:?}");
        assert_eq!(mock.started(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_takes_a_server_out_and_puts_it_back() {
    let server = Scripted::new(Listing::Works);
    let stack = start(&server).await;
    stack.breaker_set().force_open(server.id(), Subject::Server);
    sleep(Duration::from_secs(1000)).await;
    let error = stack
        .service()
        .oneshot(stack.prepare("s.add_0", "{}").unwrap());
    let error = error.await.unwrap_err();
    assert!(error.message().contains("operator"), "{error}");
    assert_eq!(error.retry_after(), None);
    stack.breaker_set().release(server.id(), Subject::Server);
    stack.call("s.add_0", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn settings_without_sense_say_whose_they_are() {
    let wrong = BreakerConfig::default().with_probes(0);
    let build = Stack::builder().server_breaker(wrong).build().await;
    let fault = build.unwrap_err().to_string();
    assert!(fault.starts_with("breaker of servers: probes is 0"));
}
