//! The same against servers we have not written: rmcp's, over both transports and in both eras.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ServerEvent, ToolServer};
use callward_mcp::client::{EraChoice, Upstream};
use callward_mcp::wire::Era;
use futures_util::StreamExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use tokio::sync::Notify;

use crate::script::{LONG, Reports, assert_fails, call, scripted};
use crate::script_http::upstream_at;

#[derive(Clone)]
struct Bench {
    versions: &'static [ProtocolVersion],
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    started: Notify,
    cancelled: Notify,
}

const BOTH: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25];
const LEGACY: &[ProtocolVersion] = &[ProtocolVersion::V_2025_11_25];

fn bench(versions: &'static [ProtocolVersion]) -> Bench {
    let seen = Arc::default();
    Bench { versions, seen }
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

impl ServerHandler for Bench {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
        let echo = Tool::new("echo", "a tool", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![echo]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "echo" => {
                let arguments = serde_json::to_string(&request.arguments).unwrap();
                if let Some(token) = context.meta.get_progress_token() {
                    let report = ProgressNotificationParam::new(token, 1.0);
                    context.peer.notify_progress(report).await.unwrap();
                }
                Ok(text(arguments))
            }
            "wait" => {
                self.seen.started.notify_one();
                context.ct.cancelled().await;
                self.seen.cancelled.notify_one();
                Ok(text("cancelled"))
            }
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }
}

fn over_pipe(bench: &Bench, era: EraChoice) -> Upstream {
    let (upstream, mut script) = scripted(1 << 16, |options| options.era = era);
    let bench = bench.clone();
    tokio::spawn(async move {
        let running = bench.serve(script.accept().await.0).await.unwrap();
        running.waiting().await
    });
    upstream
}

async fn over_http(bench: &Bench, choice: EraChoice, json: bool) -> Upstream {
    let handler = bench.clone();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(json)
        .with_sse_keep_alive(Some(Duration::from_millis(20)));
    let service: StreamableHttpService<Bench, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    upstream_at(address, |options| options.era = choice)
}

async fn everything(upstream: Upstream, bench: Bench, era: Era, hears_progress: bool) {
    upstream.ready(LONG).await.unwrap();
    assert_eq!(upstream.server_info().unwrap().era, era);
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));

    upstream.ping().await.unwrap();

    let tools = upstream.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo"]);

    let sink = Arc::new(Reports::default());
    let echo = call("echo", r#"{"n":12345678901234567}"#).with_progress(sink.clone());
    let output = upstream.call(echo).await.unwrap();
    assert_eq!(output.to_text(), r#"{"n":12345678901234567}"#);
    if hears_progress {
        assert_eq!(sink.0.lock().len(), 1);
    }

    let error = upstream.call(call("nope", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::InvalidCall, Delivery::Answered);
    assert_eq!(error.code, Some(-32602));

    let waiting = tokio::spawn(upstream.call(call("wait", "{}")));
    bench.seen.started.notified().await;
    waiting.abort();
    bench.seen.cancelled.notified().await;
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_server_of_one_era_or_both_works_over_both_transports() {
    // over a pipe a server of both eras has a session, unless modern is set
    for (server, choice, era) in [
        (BOTH, EraChoice::Auto, Era::Legacy),
        (BOTH, EraChoice::Modern, Era::Modern),
        (LEGACY, EraChoice::Auto, Era::Legacy),
    ] {
        let bench = bench(server);
        everything(over_pipe(&bench, choice), bench, era, true).await;
    }
    for (server, choice, json, era) in [
        (BOTH, EraChoice::Auto, false, Era::Modern),
        (BOTH, EraChoice::Auto, true, Era::Modern),
        (BOTH, EraChoice::Legacy, false, Era::Legacy),
        (LEGACY, EraChoice::Auto, false, Era::Legacy),
    ] {
        let bench = bench(server);
        let upstream = over_http(&bench, choice, json).await;
        everything(upstream, bench, era, !json).await;
    }
}
