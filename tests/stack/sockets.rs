//! The whole stack in front of real MCP servers on loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callward::breaker::BreakerConfig;
use callward::{ErrorKind, FreshnessMode, Server, Stack, ToolOutput};
use callward_core::{BoxFuture, BoxStream, ToolError};
use callward_mcp::client::{Target, Upstream};
use callward_mcp::server::{self, Backend, CallRequest, Introduction, ToolListing};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinHandle;

/// How long anything may take before the test counts as hanging.
const HANGS: Duration = Duration::from_secs(60);

type Run = dyn Fn(String, Value) -> BoxFuture<'static, ToolOutput> + Send + Sync;

/// An MCP server whose tools run a closure.
struct Script {
    listing: Arc<ToolListing>,
    run: Box<Run>,
}

impl Script {
    fn new<F, Fut>(tools: &[Value], run: F) -> Arc<Self>
    where
        F: Fn(String, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolOutput> + Send + 'static,
    {
        let tools = tools
            .iter()
            .map(|tool| Bytes::from(tool.to_string()))
            .collect();
        Arc::new(Self {
            listing: Arc::new(ToolListing::new(1, tools)),
            run: Box::new(move |tool, arguments| Box::pin(run(tool, arguments))),
        })
    }
}

impl Backend for Script {
    fn info(&self) -> Introduction {
        Introduction::new("script", "0.0.1")
    }

    fn tools(&self) -> Arc<ToolListing> {
        self.listing.clone()
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let arguments = serde_json::from_slice(&request.arguments).unwrap();
        let running = (self.run)(request.name, arguments);
        Box::pin(async move { Ok(running.await) })
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        Box::pin(futures_util::stream::pending())
    }
}

/// A server on a socket, until it is dropped.
struct Listening {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Listening {
    async fn start(script: Arc<Script>, address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = server::router(script, server::HttpOptions::default());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, serving }
    }

    fn upstream(&self, id: &str) -> Upstream {
        let target = Target::http(&format!("http://{}/mcp", self.address)).unwrap();
        Upstream::builder(id.parse().unwrap(), target).start()
    }

    async fn stop(self) {
        self.serving.abort();
        assert!(self.serving.await.unwrap_err().is_cancelled());
    }
}

fn tool(name: &str, read_only: bool) -> Value {
    json!({
        "name": name,
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": read_only, "destructiveHint": false},
    })
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(HANGS, work).await;
    done.unwrap_or_else(|_| panic!("it hangs"))
}

#[tokio::test]
async fn identical_reads_at_once_run_once_and_a_lost_leader_hands_over() {
    let runs = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Semaphore::new(0));
    let (counted, gated) = (runs.clone(), gate.clone());
    let script = Script::new(&[tool("get", true)], move |_, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        let gate = gated.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            ToolOutput::text(run.to_string())
        }
    });
    let server = Listening::start(script, "127.0.0.1:0").await;
    let stack = Stack::builder()
        .server(server.upstream("s"))
        .build()
        .await
        .unwrap();
    let call = |stack: Stack| {
        tokio::spawn(async move {
            stack
                .call("s.get", json!({"id": 1}))
                .await
                .unwrap()
                .to_text()
        })
    };

    let leader = call(stack.clone());
    within(async {
        while runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let followers: Vec<_> = (0..64).map(|_| call(stack.clone())).collect();
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    leader.abort();
    within(async {
        while runs.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    gate.add_permits(64);
    for follower in followers {
        assert_eq!(within(follower).await.unwrap(), "2");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn calls_to_one_server_run_at_the_same_time() {
    let all = Arc::new(Barrier::new(64));
    let script = Script::new(&[tool("wait", false)], move |_, _| {
        let all = all.clone();
        async move {
            // no call passes unless all are here
            all.wait().await;
            ToolOutput::text("met")
        }
    });
    let server = Listening::start(script, "127.0.0.1:0").await;
    let stack = Stack::builder()
        .server(server.upstream("s"))
        .build()
        .await
        .unwrap();
    let calls = (0..64).map(|n| stack.call("s.wait", json!({"n": n})));
    for answer in within(join_all(calls)).await {
        assert_eq!(answer.unwrap().to_text(), "met");
    }
}

#[tokio::test]
async fn a_write_is_seen_by_the_next_read() {
    let state = Arc::new(AtomicU64::new(0));
    let script = Script::new(&[tool("get", true), tool("add", false)], move |name, _| {
        let value = match name.as_str() {
            "add" => state.fetch_add(1, Ordering::SeqCst) + 1,
            _ => state.load(Ordering::SeqCst),
        };
        async move { ToolOutput::text(value.to_string()) }
    });
    let server = Listening::start(script, "127.0.0.1:0").await;
    let stack = Stack::builder()
        .server(Server::new(server.upstream("s")).freshness(FreshnessMode::Fixed))
        .build()
        .await
        .unwrap();
    for expected in 0..5 {
        for _ in 0..3 {
            let read = stack.call("s.get", json!({})).await.unwrap();
            assert_eq!(read.to_text(), expected.to_string());
        }
        stack.call("s.add", json!({})).await.unwrap();
    }
    assert_eq!(stack.cache_stats().hits, 10);
}

#[tokio::test]
async fn a_server_that_restarts_is_back_by_itself_and_others_never_notice() {
    let answer =
        |_: String, arguments: Value| async move { ToolOutput::text(arguments.to_string()) };
    let tools = [tool("get", true), tool("send", false)];
    let steady = Listening::start(Script::new(&tools, answer), "127.0.0.1:0").await;
    let shaky = Listening::start(Script::new(&tools, answer), "127.0.0.1:0").await;
    let address = shaky.address.to_string();
    let hour = Duration::from_secs(3600);
    let stack = Stack::builder()
        .breaker(
            BreakerConfig::default()
                .with_open_time(hour)
                .with_max_open_time(hour),
        )
        .server(steady.upstream("steady"))
        .server(shaky.upstream("shaky"))
        .build()
        .await
        .unwrap();
    stack.call("shaky.send", json!({"n": 0})).await.unwrap();

    shaky.stop().await;
    // the first may have been on its way on the connection that broke; then it is refused
    let mut last = ErrorKind::Internal;
    for n in 0..8 {
        last = stack
            .call("shaky.send", json!({"n": n}))
            .await
            .unwrap_err()
            .kind();
        stack.call("steady.send", json!({"n": n})).await.unwrap();
        stack.call("steady.get", json!({"n": n})).await.unwrap();
    }
    assert_eq!(
        last,
        ErrorKind::BreakerOpen,
        "a dead server's calls fail at once"
    );

    let script = Script::new(&tools, answer);
    let _back = Listening::start(script, &address).await;
    // the breaker would stay open for an hour; the connection that is back closes it
    let works = async {
        while stack.call("shaky.send", json!({"n": 9})).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    within(works).await;
}
