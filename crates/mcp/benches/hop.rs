//! What one hop to a server costs: our upstream against rmcp's client, same server, same pipe.
//!
//! `cargo bench -p callward-mcp --bench hop` prints a table. The server is rmcp's, in this process,
//! over an in-memory pipe, so both clients pay for it alike; only the difference means anything.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the real clock, prints, and may stop at any failure"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use callward_core::{
    CallPlan, Profile, Resolved, ServerId, Source, Tool, ToolCall, ToolDefinition, ToolServer,
};
use callward_mcp::client::{EraChoice, Io, Target, Upstream, UpstreamOptions};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;

const ROUNDS: usize = 5;

#[derive(Clone)]
struct Server {
    result: CallToolResult,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(self.result.clone().into())
    }
}

fn server(bytes: usize) -> Server {
    let text = ContentBlock::text("x".repeat(bytes));
    Server {
        result: CallToolResult::success(vec![text]),
    }
}

fn tool() -> Arc<Tool> {
    let raw = r#"{"name":"get","inputSchema":{"type":"object"}}"#;
    let definition = ToolDefinition::from_json(raw).unwrap();
    let resolved = Resolved::from_single(definition.annotations.clone(), Source::Declared);
    let plan = CallPlan::derive(&resolved, &Profile::standard());
    let set = ServerId::new("s").unwrap().into();
    Arc::new(Tool::new(set, definition, resolved, plan))
}

async fn ours(bytes: usize) -> Upstream {
    let io = Io::new(move || async move {
        let (client, far) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let running = server(bytes).serve(far).await.unwrap();
            let _ = running.waiting().await;
        });
        let (reader, writer) = tokio::io::split(client);
        Ok((Box::new(reader) as _, Box::new(writer) as _))
    });
    let mut options = UpstreamOptions::default();
    options.era = EraChoice::Legacy;
    let upstream = Upstream::start(ServerId::new("s").unwrap(), Target::Io(io), options);
    upstream.ready(Duration::from_secs(10)).await.unwrap();
    upstream
}

async fn measure<F, Fut>(callers: usize, calls: usize, one: F) -> f64
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let start = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let one = one.clone();
            tokio::spawn(async move {
                for _ in 0..calls / callers {
                    one().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed().as_secs_f64() * 1e6 / calls as f64
}

fn main() {
    // `cargo test --benches` runs this too: then once is enough
    let calls = if std::env::args().any(|arg| arg == "--bench") {
        20_000
    } else {
        64
    };
    // one thread: then time per call is processor time per call, client and server together
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("µs a call, client and server on one thread, best of {ROUNDS} rounds");
    println!("| answer | callers | rmcp client | ours | difference |");
    println!("| --- | --- | --- | --- | --- |");
    for bytes in [200, 20_000] {
        for callers in [1, 32] {
            let (theirs, ours) = runtime.block_on(compare(bytes, callers, calls));
            println!(
                "| {bytes} B | {callers} | {theirs:.1} | {ours:.1} | {:.1} |",
                theirs - ours
            );
        }
    }
}

async fn compare(bytes: usize, callers: usize, calls: usize) -> (f64, f64) {
    let upstream = ours(bytes).await;
    let tool = tool();
    let (near, far) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let running = server(bytes).serve(far).await.unwrap();
        let _ = running.waiting().await;
    });
    let client = Arc::new(().serve(near).await.unwrap());
    let arguments = json!({"id": 7, "query": "some text to look for"});
    let raw = bytes::Bytes::from(arguments.to_string());
    let (mut theirs, mut own) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let (client, arguments) = (client.clone(), arguments.clone());
        let by_rmcp = move || {
            let (client, arguments) = (client.clone(), arguments.clone());
            async move {
                let params = CallToolRequestParams::new("get")
                    .with_arguments(arguments.as_object().cloned().unwrap_or_default());
                client.call_tool(params).await.unwrap();
            }
        };
        theirs = theirs.min(measure(callers, calls, by_rmcp).await);
        let (upstream, tool, raw) = (upstream.clone(), tool.clone(), raw.clone());
        let by_us = move || {
            let call = upstream.call(ToolCall::new(tool.clone(), raw.clone()));
            async move {
                call.await.unwrap();
            }
        };
        own = own.min(measure(callers, calls, by_us).await);
    }
    (theirs, own)
}
