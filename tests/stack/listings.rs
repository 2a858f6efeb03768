//! Listings that hang, panic or never end: the server is followed all the same.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::{Server, Stack, ToolError, ToolOutput};
use callward_core::{
    BoxFuture, BoxStream, ServerEvent, ServerId, ToolCall, ToolDefinition, ToolServer,
};
use callward_testkit::{MockServer, MockService};
use futures_util::StreamExt;
use serde_json::json;
use tokio::time::Instant;

type Listed = Result<Vec<ToolDefinition>, ToolError>;

/// A server whose n-th listing, counted from 1, goes as the test says.
struct Lister<F> {
    mock: Arc<MockServer>,
    listings: AtomicUsize,
    script: F,
}

impl<F> Lister<F>
where
    F: Fn(&MockServer, usize) -> Option<Listed> + Send + Sync + 'static,
{
    /// `None` from the script stands for a listing that hangs.
    fn new(script: F) -> Arc<Self> {
        let tools = vec![
            json!({"name": "get_a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}),
        ];
        Arc::new(Self {
            mock: MockServer::new("s", tools, MockService::counting()),
            listings: AtomicUsize::new(0),
            script,
        })
    }

    fn listings(&self) -> usize {
        self.listings.load(Ordering::SeqCst)
    }
}

impl<F> ToolServer for Lister<F>
where
    F: Fn(&MockServer, usize) -> Option<Listed> + Send + Sync + 'static,
{
    fn id(&self) -> &ServerId {
        self.mock.id()
    }

    fn list_tools(&self) -> BoxFuture<'_, Listed> {
        let n = self.listings.fetch_add(1, Ordering::SeqCst) + 1;
        match (self.script)(&self.mock, n) {
            Some(listed) => Box::pin(std::future::ready(listed)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.mock.call(call)
    }

    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        self.mock.events()
    }
}

fn one_tool() -> Listed {
    let tool = json!({"name": "get_a", "annotations": {"readOnlyHint": true}});
    Ok(vec![ToolDefinition::from_json(tool.to_string()).unwrap()])
}

async fn turns() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_hangs_hides_no_news_of_its_server() {
    let server = Lister::new(|_, n| (n > 1).then(one_tool));
    let building = tokio::spawn(
        Stack::builder()
            .server(Server::shared(server.clone()))
            .build(),
    );
    turns().await;
    server.mock.emit(&ServerEvent::Up);
    turns().await;
    assert_eq!(server.listings(), 1, "it hangs");

    let start = Instant::now();
    server
        .mock
        .emit(&ServerEvent::Down("pulled the plug".to_owned()));
    let stack = building.await.unwrap().unwrap();
    assert_eq!(
        stack.servers()[0].last_error.as_deref(),
        Some("pulled the plug")
    );
    let mut changes = stack.changes();
    server.mock.emit(&ServerEvent::Up);
    changes.next().await.unwrap();
    stack.call("s.get_a", json!({})).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// Builds a stack around a server that comes up while it is built.
async fn started<F>(server: &Arc<Lister<F>>) -> Stack
where
    F: Fn(&MockServer, usize) -> Option<Listed> + Send + Sync + 'static,
{
    let building = tokio::spawn(
        Stack::builder()
            .server(Server::shared(server.clone()))
            .build(),
    );
    turns().await;
    server.mock.emit(&ServerEvent::Up);
    building.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn list_changed_in_every_listing_does_not_loop() {
    let server = Lister::new(|mock, _| {
        mock.emit(&ServerEvent::ToolsChanged);
        Some(one_tool())
    });
    let stack = started(&server).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let listings = server.listings();
    assert!((2..=22).contains(&listings), "{listings} listings in 10 s");
    assert!(stack.servers()[0].up);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_changes_is_one_listing() {
    let server = Lister::new(|_, _| Some(one_tool()));
    let _stack = started(&server).await;
    for _ in 0..1000 {
        server.mock.emit(&ServerEvent::ToolsChanged);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(server.listings(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_panics_has_failed_and_is_tried_again() {
    let server = Lister::new(|_, n| {
        assert_ne!(n, 1, "the first listing panics");
        Some(one_tool())
    });
    let stack = started(&server).await;
    let error = stack.servers()[0].last_error.clone().unwrap();
    assert!(error.contains("panicked"), "{error}");
    stack.changes().next().await.unwrap();
    stack.call("s.get_a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn results_are_dropped_when_tools_change_or_the_connection_is_made_anew() {
    let server = Lister::new(|_, _| Some(one_tool()));
    let stack = started(&server).await;
    let ask = async || {
        let answer = stack.call("s.get_a", json!({})).await.unwrap();
        answer.to_text()
    };
    assert_eq!([ask().await, ask().await], ["1", "1"]);
    server.mock.emit(&ServerEvent::ToolsChanged);
    turns().await;
    assert_eq!([ask().await, ask().await], ["2", "2"]);
    server.mock.emit(&ServerEvent::Down("gone".to_owned()));
    turns().await;
    server.mock.emit(&ServerEvent::Up);
    turns().await;
    assert_eq!([ask().await, ask().await], ["3", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_went_and_came_back_starts_without_results() {
    let server = Lister::new(|_, n| Some(if n == 2 { Ok(Vec::new()) } else { one_tool() }));
    let stack = started(&server).await;
    let ask = async || stack.call("s.get_a", json!({})).await;
    assert_eq!(ask().await.unwrap().to_text(), "1");
    for _ in 0..2 {
        let mut changes = stack.changes();
        server.mock.emit(&ServerEvent::ToolsChanged);
        changes.next().await.unwrap();
    }
    assert_eq!(ask().await.unwrap().to_text(), "2");
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_there_at_once_and_its_startup_ends_with_the_timeout() {
    let hangs = Lister::new(|_, _| None);
    let began = Instant::now();
    let limit = Duration::from_secs(3);
    let (stack, startup) = Stack::builder()
        .server(Server::shared(hangs).in_set("s".parse().unwrap()))
        .startup_timeout(limit)
        .start()
        .unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(!stack.servers()[0].up);
    startup.finished().await;
    assert_eq!(began.elapsed(), limit);

    let lists = Lister::new(|_, _| Some(one_tool()));
    let (stack, startup) = Stack::builder()
        .server(Server::shared(lists.clone()))
        .start()
        .unwrap();
    turns().await;
    lists.mock.emit(&ServerEvent::Up);
    startup.finished().await;
    assert_eq!(began.elapsed(), limit);
    assert_eq!(stack.catalogue().entries().len(), 1);
}
