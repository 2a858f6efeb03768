//! rmcp as an independent client, in both eras, over both transports.

use std::sync::Arc;

use callward_mcp::server::serve_stdio;
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::backend::Bench;
use crate::http::{Server, client};

/// A client that notices when a legacy server says that its tools changed.
#[derive(Clone, Default)]
struct Listener(Arc<Notify>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}

type Client = RunningService<RoleClient, Listener>;

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    }
}

async fn over_stdio(bench: &Arc<Bench>, mode: ClientLifecycleMode) -> Client {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let served = serve_stdio(Arc::clone(bench), reader, writer, CancellationToken::new());
    tokio::spawn(served);
    let transport = tokio::io::split(near);
    Listener::default()
        .serve_with_lifecycle(transport, mode)
        .await
        .unwrap()
}

async fn over_http(server: &Server, mode: ClientLifecycleMode) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    let transport = StreamableHttpClientTransport::with_client(client(), config);
    Listener::default()
        .serve_with_lifecycle(transport, mode)
        .await
        .unwrap()
}

async fn lists_and_calls(client: &Client) {
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["echo", "hold", "steps", "odd", "mirror"]);
    let arguments = serde_json::json!({"a": 1});
    let echo =
        CallToolRequestParams::new("echo").with_arguments(arguments.as_object().cloned().unwrap());
    let said = client.call_tool(echo).await.unwrap();
    let text = said
        .content
        .first()
        .and_then(|block| block.as_text())
        .unwrap();
    assert_eq!(text.text, r#"{"a":1}"#);
    let steps = client
        .call_tool(CallToolRequestParams::new("steps"))
        .await
        .unwrap();
    assert_ne!(steps.is_error, Some(true));
    let unknown = client.call_tool(CallToolRequestParams::new("nope")).await;
    assert!(unknown.unwrap_err().to_string().contains("nope"));
}

async fn hears_as_legacy(client: &Client, bench: &Bench) {
    bench.listened(1).await;
    bench.change(&["fresh"]);
    client.service().0.notified().await;
    assert_eq!(client.list_all_tools().await.unwrap()[0].name, "fresh");
}

async fn hears_as_modern(client: &Client, bench: &Bench) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(filter).await.unwrap();
    assert_eq!(subscription.acknowledged().tools_list_changed, Some(true));
    bench.change(&["fresh"]);
    let reported = subscription.next().await.unwrap().unwrap();
    assert!(matches!(
        reported,
        ServerNotification::ToolListChangedNotification(_)
    ));
    subscription.cancel().await.unwrap();
}

async fn drops_what_is_abandoned(client: &Client, bench: &Bench) {
    let peer = client.peer().clone();
    let waiting =
        tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("hold")).await });
    assert_eq!(bench.event().await, "started");
    waiting.abort();
    drop(waiting.await);
    assert_eq!(bench.event().await, "dropped");
}

#[tokio::test]
async fn a_legacy_client_lists_calls_hears_and_cancels_on_both_transports() {
    let (bench, server) = (Bench::new(), Server::start().await);
    let legacy = || ClientLifecycleMode::Initialize;
    for (bench, client) in [
        (&bench, over_stdio(&bench, legacy()).await),
        (&server.bench, over_http(&server, legacy()).await),
    ] {
        lists_and_calls(&client).await;
        drops_what_is_abandoned(&client, bench).await;
        hears_as_legacy(&client, bench).await;
    }
}

#[tokio::test]
async fn a_modern_client_lists_calls_hears_and_cancels_on_both_transports() {
    let (bench, server) = (Bench::new(), Server::start().await);
    for (bench, client) in [
        (&bench, over_stdio(&bench, modern()).await),
        (&server.bench, over_http(&server, modern()).await),
    ] {
        lists_and_calls(&client).await;
        drops_what_is_abandoned(&client, bench).await;
        hears_as_modern(&client, bench).await;
    }
}

#[tokio::test]
async fn a_client_that_probes_finds_the_modern_era_on_both_transports() {
    let bench = Bench::new();
    let server = Server::start().await;
    for client in [
        over_stdio(&bench, auto()).await,
        over_http(&server, auto()).await,
    ] {
        let info = client.peer_info().unwrap();
        assert_eq!(info.protocol_version, ProtocolVersion::V_2026_07_28);
    }
}
