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

/// Lists and calls, abandons a call, and is notified of a change.
async fn uses(client: &Client, bench: &Bench) {
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["echo", "hold", "steps", "odd", "mirror"]);
    let call = |tool: &'static str| client.call_tool(CallToolRequestParams::new(tool));
    let echo = call("echo").await.unwrap();
    let text = echo.content[0].as_text().unwrap();
    assert_eq!(text.text, "{}");
    let steps = call("steps").await.unwrap();
    assert_ne!(steps.is_error, Some(true));
    let unknown = call("nope").await.unwrap_err();
    assert!(unknown.to_string().contains("nope"));

    let peer = client.peer().clone();
    let waiting =
        tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("hold")).await });
    assert_eq!(bench.event().await, "started");
    waiting.abort();
    drop(waiting.await);
    assert_eq!(bench.event().await, "dropped");

    let version = client.peer_info().unwrap().protocol_version.clone();
    if version < ProtocolVersion::V_2026_07_28 {
        bench.listened(1).await;
        bench.change(&["fresh"]);
        client.service().0.notified().await;
    } else {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = client.listen(filter).await.unwrap();
        assert_eq!(subscription.acknowledged().tools_list_changed, Some(true));
        bench.change(&["fresh"]);
        let reported = subscription.next().await.unwrap().unwrap();
        let changed = matches!(reported, ServerNotification::ToolListChangedNotification(_));
        assert!(changed, "{reported:?}");
        subscription.cancel().await.unwrap();
    }
    assert_eq!(client.list_all_tools().await.unwrap()[0].name, "fresh");
}

#[tokio::test]
async fn a_client_of_either_era_is_served_on_both_transports() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    // a client that probes finds the modern era
    let probes = ClientLifecycleMode::Auto {
        preferred_versions: preferred_versions.clone(),
        legacy_version: None,
    };
    let discovers = ClientLifecycleMode::Discover { preferred_versions };
    for (mode, is_modern) in [
        (ClientLifecycleMode::Initialize, false),
        (discovers, true),
        (probes, true),
    ] {
        let (bench, server) = (Bench::new(), Server::start().await);
        for (bench, client) in [
            (&bench, over_stdio(&bench, mode.clone()).await),
            (&server.bench, over_http(&server, mode.clone()).await),
        ] {
            let version = &client.peer_info().unwrap().protocol_version;
            assert_eq!(*version == ProtocolVersion::V_2026_07_28, is_modern);
            uses(&client, bench).await;
        }
    }
}
