//! Two MCP servers behind one stack: one over HTTP, one as a child process over its pipes.
//! `cargo run --example mcp_servers`.
//!
//! Both servers are this program too, so that nothing has to be installed.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::{BoxFuture, BoxStream, List};
use callward::{
    Caching, CallRecord, Caller, Server, Stack, ToolError, ToolOutput, ToolSpec, Tools,
};
use callward_mcp::client::{CommandSpec, HttpSpec, Target, Upstream, UpstreamOptions};
use callward_mcp::server::{
    self, Anonymous, Backend, CallRequest, HttpOptions, Introduction, ToolListing,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// In-process tools as an MCP server.
struct Served(Stack);

impl Backend for Served {
    fn info(&self, _: &Arc<Caller>) -> Introduction {
        Introduction::new("example", "1.0.0")
    }

    fn tools(&self, _: &Arc<Caller>) -> Arc<ToolListing> {
        let catalogue = self.0.catalogue();
        let tools = catalogue.entries().iter();
        let tools = tools.map(|entry| entry.listed().clone()).collect();
        Arc::new(ToolListing::new(catalogue.generation(), tools))
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let call = self.0.prepare(&request.name, request.arguments);
        let stack = self.0.clone();
        Box::pin(async move { stack.run(call?).await })
    }

    fn changes(&self, _: &Caller) -> BoxStream<'static, List> {
        self.0.changes()
    }
}

async fn serve(tools: Tools) -> Result<Arc<Served>, Box<dyn Error>> {
    // names as they are: the program in front puts its own prefix before them
    let stack = Stack::builder().server(Server::new(tools).prefix(None));
    Ok(Arc::new(Served(stack.build().await?)))
}

fn clock() -> Result<Tools, Box<dyn Error>> {
    let zones = ToolSpec::new("list_zones").description("Lists the time zones");
    let answer = |_: Value| async { Ok::<_, String>("Europe/Rome, Europe/Oslo") };
    Ok(Tools::new("clock")?.tool(zones, answer)?)
}

fn notes() -> Result<Tools, Box<dyn Error>> {
    let delete = ToolSpec::new("delete_note").description("Deletes a note for good");
    let answer = |asked: Value| async move { Ok::<_, String>(format!("deleted {}", asked["id"])) };
    Ok(Tools::new("notes")?.tool(delete, answer)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let over = CancellationToken::new();
    if std::env::args().nth(1).as_deref() == Some("clock") {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        return Ok(server::serve_stdio(serve(clock()?).await?, input, output, over).await?);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let routes = server::router(
        serve(notes()?).await?,
        Arc::<Anonymous>::default(),
        HttpOptions::default(),
    );
    tokio::spawn(async move { axum::serve(listener, routes).await });

    // from here on it is what a program of yours would do
    let child = CommandSpec::new(std::env::current_exe()?).with_args(["clock"]);
    let options = UpstreamOptions::default();
    let clock = Upstream::start("clock".parse()?, Target::Command(child), options.clone());
    let notes = Target::Http(HttpSpec::new(&url)?);
    let notes = Upstream::start("notes".parse()?, notes, options);
    // zones seldom change: without this, repeated calls have to show it first
    let zones = Caching::For(Duration::from_secs(3600));
    let stack = Stack::builder()
        .server(Server::new(clock.clone()).caching(zones))
        .server(notes);
    let stack = stack.build().await?;

    for entry in stack.catalogue().entries() {
        println!("{:20} {}", entry.client_name(), entry.tool().plan().effect);
    }
    println!();
    for (tool, arguments) in [
        ("clock.list_zones", json!({})),
        ("clock.list_zones", json!({})),
        ("notes.delete_note", json!({"id": 7})),
    ] {
        let record = Arc::new(CallRecord::new());
        let call = stack.prepare(tool, Bytes::from(arguments.to_string()))?;
        let output = stack.run(call.with_record(record.clone())).await?;
        let cache = record.facts().cache.as_str();
        println!("{tool:20} {cache:12} {}", output.to_text());
    }
    clock.shutdown().await;
    Ok(())
}
