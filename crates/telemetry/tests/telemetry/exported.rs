//! Exported spans: names, kinds, parents and status, over the bridge to OpenTelemetry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward_core::{
    Delivery, ErrorKind, Inbound, Outbound, RequestName, SessionId, ToolCall, ToolError,
    ToolOutput, TraceContext, Transport,
};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, DiscoverySpan};
use callward_testkit::{MockService, call, tool};
use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use parking_lot::Mutex;
use serde_json::json;
use tower::{Layer, ServiceExt};
use tracing::Instrument;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;

use crate::capture::keep_dispatchers;

/// An exporter that keeps spans, for as long as it lives.
struct Exporter {
    spans: InMemorySpanExporter,
    _provider: SdkTracerProvider,
    _guard: DefaultGuard,
}

/// A span as it was exported.
#[derive(Debug)]
struct Exported {
    name: String,
    kind: SpanKind,
    trace: u128,
    id: u64,
    parent: u64,
    /// The traces it is linked to.
    links: Vec<u128>,
    attributes: BTreeMap<String, String>,
    is_error: bool,
}

impl Exported {
    fn of(span: SpanData) -> Self {
        let trace = |id: opentelemetry::TraceId| u128::from_be_bytes(id.to_bytes());
        let links = span.links.links.iter();
        let attributes = span.attributes.iter();
        Self {
            trace: trace(span.span_context.trace_id()),
            id: u64::from_be_bytes(span.span_context.span_id().to_bytes()),
            parent: u64::from_be_bytes(span.parent_span_id.to_bytes()),
            links: links
                .map(|link| trace(link.span_context.trace_id()))
                .collect(),
            attributes: attributes
                .map(|pair| (pair.key.to_string(), pair.value.to_string()))
                .collect(),
            is_error: matches!(span.status, Status::Error { .. }),
            kind: span.span_kind,
            name: span.name.into_owned(),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    fn assert_has(&self, expected: &[(&str, &str)]) {
        for (name, value) in expected {
            assert_eq!(self.get(name), Some(*value), "{name} of {self:?}");
        }
    }
}

impl Exporter {
    fn start() -> Self {
        keep_dispatchers();
        let spans = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(spans.clone())
            .build();
        let bridge = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("test"))
            .with_context_activation(false)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        let subscriber = tracing_subscriber::registry().with(bridge);
        Self {
            spans,
            _provider: provider,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The spans that ended, in the order they did.
    fn spans<const N: usize>(&self) -> [Exported; N] {
        let spans = self.spans.get_finished_spans().unwrap();
        let spans: Vec<_> = spans.into_iter().map(Exported::of).collect();
        spans.try_into().unwrap()
    }
}

/// The contexts that requests carried.
type Carried = Arc<Mutex<Vec<TraceContext>>>;

/// A leaf that sends its attempts out as MCP requests would be, and keeps the contexts they carry.
fn remote(
    carried: Carried,
    answer: impl Fn(usize) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> MockService {
    let id = AtomicU64::new(40);
    MockService::new(move |call: ToolCall, n| {
        let mut request = Outbound::new(Transport::Tcp, id.fetch_add(1, Ordering::Relaxed));
        request.protocol_version = Some("2026-07-28");
        request.address = Some("127.0.0.1");
        request.port = Some(8080);
        request.http_version = Some("1.1");
        let watch = call.attempt().watch.as_ref();
        let sent = watch.and_then(|watch| watch.sends(&request));
        carried.lock().extend(sent);
        std::future::ready(answer(n))
    })
}

/// A call as a client asked for it over HTTP, in a trace of its own.
fn inbound() -> ToolCall {
    let mut inbound = Inbound::new(Transport::Tcp);
    inbound.request = Some(RequestName::Text("a-1".into()));
    inbound.protocol_version = Some("2025-11-25");
    inbound.session = Some(SessionId::new("s-1"));
    inbound.http_version = Some("1.1");
    inbound.client = Some(([10, 0, 0, 1], 5000).into());
    inbound.beside = TraceContext::new(0xbe51de, 5, 1);
    let trace = TraceContext::new(0xcafe, 0xf00d, 1).unwrap();
    let mut call = call(&tool("read_order").read_only().build(), json!({}));
    call.context_mut().trace = Some(Arc::new(trace.with_state(Some("v=1"))));
    call.context_mut().inbound = Some(Arc::new(inbound));
    call
}

async fn send(leaf: &MockService, call: ToolCall) -> Result<ToolOutput, ToolError> {
    crate::capture::send(&CallSpanLayer::default(), leaf, call).await
}

#[tokio::test(start_paused = true)]
async fn a_trace_continues_from_client_to_server() {
    let exporter = Exporter::start();
    let carried = Carried::default();
    let leaf = remote(carried.clone(), |_| Ok(ToolOutput::text("42")));
    send(&leaf, inbound()).await.unwrap();
    let [attempt, call] = exporter.spans();
    for (span, kind) in [(&call, SpanKind::Server), (&attempt, SpanKind::Client)] {
        assert_eq!((&*span.name, &span.kind), ("tools/call read_order", &kind));
        span.assert_has(&[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "read_order"),
            ("network.transport", "tcp"),
        ]);
        for name in ["otel.name", "otel.kind", "otel.status_code"] {
            assert_eq!(span.get(name), None);
        }
        assert!(!span.is_error);
    }
    assert_eq!((call.trace, call.parent), (0xcafe, 0xf00d));
    assert_eq!((attempt.trace, attempt.parent), (0xcafe, call.id));
    assert_eq!(call.links, [0xbe51de]);
    let sent = carried.lock()[0].clone();
    assert_eq!((sent.trace_id(), sent.parent_id()), (0xcafe, attempt.id));
    assert_eq!((sent.is_sampled(), sent.state()), (true, Some("v=1")));
    call.assert_has(&[
        ("jsonrpc.request.id", "a-1"),
        ("mcp.protocol.version", "2025-11-25"),
        ("mcp.session.id", "s-1"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("client.address", "10.0.0.1"),
        ("client.port", "5000"),
        ("callward.effect", "read_only"),
        ("callward.annotations", "[read-only]"),
    ]);
    attempt.assert_has(&[
        ("jsonrpc.request.id", "40"),
        ("mcp.protocol.version", "2026-07-28"),
        ("server.address", "127.0.0.1"),
        ("server.port", "8080"),
        ("callward.attempt.number", "1"),
    ]);
}

#[tokio::test(start_paused = true)]
async fn a_local_call_is_exported_as_execute_tool() {
    let exporter = Exporter::start();
    let mut request = call(&tool("add").build(), json!({}));
    request.context_mut().id = Some("call_7".into());
    let around = tracing::info_span!("agent");
    let leaf = MockService::counting();
    send(&leaf, request).instrument(around).await.unwrap();
    let [attempt, call, agent] = exporter.spans();
    assert_eq!((&*agent.name, call.parent), ("agent", agent.id));
    assert_eq!(
        [&*call.name, &*attempt.name],
        ["execute_tool add", "attempt"]
    );
    call.assert_has(&[
        ("gen_ai.tool.call.id", "call_7"),
        ("gen_ai.tool.type", "function"),
    ]);
    // nothing was sent anywhere
    for span in [call, attempt] {
        assert_eq!(span.kind, SpanKind::Internal);
        assert_eq!(span.get("mcp.method.name"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_caller_is_an_error_of_the_client_span_only() {
    let fault = |code| {
        let kind = ErrorKind::InvalidCall;
        Err(ToolError::new(kind, Delivery::Answered, "refused").with_code(code))
    };
    for (answer, code, is_ours) in [
        (fault(-32700), Some("-32700"), false),
        (fault(-32600), Some("-32600"), false),
        (fault(-32601), Some("-32601"), false),
        (fault(-32602), Some("-32602"), false),
        (fault(-32002), Some("-32002"), false),
        (fault(-32603), Some("-32603"), true),
        (fault(-32000), Some("-32000"), true),
        (Ok(ToolOutput::error_text("no such order")), None, true),
    ] {
        let exporter = Exporter::start();
        let leaf = remote(Carried::default(), move |_| answer.clone());
        let _ = send(&leaf, inbound()).await;
        let [attempt, call] = exporter.spans();
        assert!(attempt.is_error, "{code:?}");
        assert_eq!(call.is_error, is_ours, "{code:?}");
        for span in [&attempt, &call] {
            assert_eq!(span.get("rpc.response.status_code"), code);
        }
        assert_eq!(call.get("error.type").is_some(), is_ours);
        attempt.assert_has(&[("error.type", code.unwrap_or("tool_error"))]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_here_has_our_code_and_no_request() {
    let exporter = Exporter::start();
    let open = ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, "open");
    let leaf = MockService::sequence(vec![Err(open)]);
    let _ = send(&leaf, inbound()).await;
    let [attempt, call] = exporter.spans();
    assert!(call.is_error);
    let code = "rpc.response.status_code";
    call.assert_has(&[(code, "-33010"), ("error.type", "no_eligible_server")]);
    assert_eq!(attempt.kind, SpanKind::Internal);
    assert_eq!(attempt.get(code), None);
}

#[tokio::test(start_paused = true)]
async fn a_background_attempt_continues_the_trace_of_its_call() {
    let exporter = Exporter::start();
    let leaf = MockService::counting();
    send(&leaf, inbound()).await.unwrap();
    // a refresh runs in a task of its own, outside of any span
    let seen = leaf.seen()[0].in_background();
    let refresh = AttemptSpanLayer::default().layer(leaf);
    refresh.oneshot(seen).await.unwrap();
    let [_, call, refreshed] = exporter.spans();
    assert_eq!(refreshed.parent, call.id);
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_exported_as_a_client_span() {
    let exporter = Exporter::start();
    let server = "orders-eu".parse().unwrap();
    let span = DiscoverySpan::begin(&server);
    let watch = span.watch().unwrap();
    let carried = [1, 2].map(|id| watch.sends(&Outbound::new(Transport::Pipe, id)).unwrap());
    let listed = std::future::ready(Ok(Vec::new()));
    span.follow(listed).await.unwrap();
    drop(DiscoverySpan::begin(&server).follow(std::future::pending()));
    let [listing, cancelled] = exporter.spans();
    assert_eq!(&*listing.name, "tools/list");
    assert_eq!(listing.kind, SpanKind::Client);
    listing.assert_has(&[
        ("mcp.method.name", "tools/list"),
        ("callward.server", "orders-eu"),
        ("callward.discovery.tools", "0"),
        ("jsonrpc.request.id", "1"),
        ("network.transport", "pipe"),
    ]);
    assert!(carried.iter().all(|sent| sent.parent_id() == listing.id));
    assert!(cancelled.is_error && !listing.is_error);
    cancelled.assert_has(&[("error.type", "cancelled")]);
}
