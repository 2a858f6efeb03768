//! Exported spans: names, kinds, parents and status, over the bridge to OpenTelemetry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callward_core::{
    Delivery, ErrorKind, Inbound, Outbound, RequestName, ServerId, ToolCall, ToolError, ToolOutput,
    TraceContext, Transport,
};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, DiscoveryPurpose, DiscoverySpan};
use callward_testkit::{MockService, call, tool};
use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tower::{Layer, ServiceExt};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;

/// An exporter that keeps spans, for as long as it lives.
struct Exporter {
    spans: InMemorySpanExporter,
    _provider: SdkTracerProvider,
    _guard: DefaultGuard,
}

impl Exporter {
    fn start() -> Self {
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

    /// The spans that ended, in the order they did, under their names.
    fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    fn one(&self, name: &str) -> SpanData {
        let mut spans = self.spans();
        spans.retain(|span| span.name == name);
        assert_eq!(spans.len(), 1, "{name}: {spans:?}");
        spans.remove(0)
    }
}

fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    let pairs = span.attributes.iter();
    pairs
        .map(|pair| (pair.key.to_string(), pair.value.to_string()))
        .collect()
}

fn assert_has(span: &SpanData, expected: &[(&str, &str)]) {
    let found = attributes(span);
    for (name, value) in expected {
        let has = found.get(*name).map(String::as_str);
        assert_eq!(has, Some(*value), "{name} of {found:?}");
    }
}

fn is_error(span: &SpanData) -> bool {
    matches!(span.status, Status::Error { .. })
}

fn context_of(span: &SpanData) -> (u128, u64) {
    let context = &span.span_context;
    (
        u128::from_be_bytes(context.trace_id().to_bytes()),
        u64::from_be_bytes(context.span_id().to_bytes()),
    )
}

fn parent_of(span: &SpanData) -> u64 {
    u64::from_be_bytes(span.parent_span_id.to_bytes())
}

/// A leaf that sends its attempts out as MCP requests would be, and keeps the contexts they carry.
fn remote(
    carried: Arc<parking_lot::Mutex<Vec<TraceContext>>>,
    answer: impl Fn(usize) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> MockService {
    let id = AtomicUsize::new(40);
    MockService::new(move |call: ToolCall, n| {
        let mut request = Outbound::new(Transport::Tcp, id.fetch_add(1, Ordering::Relaxed) as u64);
        request.protocol_version = Some("2026-07-28");
        request.address = Some("127.0.0.1");
        request.port = Some(8080);
        request.http_version = Some("1.1");
        let watch = call.attempt().watch.as_ref();
        carried
            .lock()
            .extend(watch.and_then(|watch| watch.sends(&request)));
        std::future::ready(answer(n))
    })
}

/// A call as a client asked for it over HTTP, in a trace of its own.
fn inbound() -> ToolCall {
    let mut inbound = Inbound::new(Transport::Tcp);
    inbound.request = Some(RequestName::Text("a-1".into()));
    inbound.protocol_version = Some("2025-11-25");
    inbound.session = Some(callward_core::SessionId::new("s-1"));
    inbound.http_version = Some("1.1");
    inbound.client = Some(([10, 0, 0, 1], 5000).into());
    inbound.beside = TraceContext::new(0xbe51de, 5, TraceContext::SAMPLED);
    let trace = TraceContext::new(0xcafe, 0xf00d, TraceContext::SAMPLED)
        .unwrap()
        .with_state(Some("v=1"));
    call(&tool("read_order").read_only().build(), json!({}))
        .with_trace(Arc::new(trace))
        .with_inbound(Arc::new(inbound))
}

async fn send(leaf: &MockService, call: ToolCall) -> Result<ToolOutput, ToolError> {
    crate::capture::send(&CallSpanLayer::new(), leaf, call).await
}

#[tokio::test(start_paused = true)]
async fn a_trace_continues_from_client_to_server() {
    let exporter = Exporter::start();
    let carried = Arc::default();
    let leaf = remote(Arc::clone(&carried), |_| Ok(ToolOutput::text("42")));
    send(&leaf, inbound()).await.unwrap();
    let spans = exporter.spans();
    let [attempt, call] = &spans[..] else {
        panic!("two spans: {spans:?}");
    };
    for (span, kind) in [(call, SpanKind::Server), (attempt, SpanKind::Client)] {
        assert_eq!(
            (&*span.name, &span.span_kind),
            ("tools/call read_order", &kind)
        );
        assert_has(
            span,
            &[
                ("mcp.method.name", "tools/call"),
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.tool.name", "read_order"),
                ("network.transport", "tcp"),
            ],
        );
        let found = attributes(span);
        for name in ["otel.name", "otel.kind", "otel.status_code"] {
            assert!(!found.contains_key(name));
        }
    }
    let ((trace, call_id), (attempt_trace, attempt_id)) = (context_of(call), context_of(attempt));
    assert_eq!((trace, attempt_trace), (0xcafe, 0xcafe));
    assert_eq!((parent_of(call), parent_of(attempt)), (0xf00d, call_id));
    let sent = carried.lock()[0].clone();
    assert_eq!((sent.trace_id(), sent.parent_id()), (0xcafe, attempt_id));
    assert!(sent.is_sampled());
    assert_eq!(sent.state(), Some("v=1"));
    let link = &call.links.links[0].span_context;
    assert_eq!(u128::from_be_bytes(link.trace_id().to_bytes()), 0xbe51de);
    assert!(!is_error(call) && !is_error(attempt));
    assert_has(
        call,
        &[
            ("jsonrpc.request.id", "a-1"),
            ("mcp.protocol.version", "2025-11-25"),
            ("mcp.session.id", "s-1"),
            ("network.protocol.name", "http"),
            ("network.protocol.version", "1.1"),
            ("client.address", "10.0.0.1"),
            ("client.port", "5000"),
            ("callward.effect", "read_only"),
            ("callward.annotations", "[read-only]"),
        ],
    );
    assert_has(
        attempt,
        &[
            ("jsonrpc.request.id", "40"),
            ("mcp.protocol.version", "2026-07-28"),
            ("server.address", "127.0.0.1"),
            ("server.port", "8080"),
            ("callward.attempt.number", "1"),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_local_call_is_exported_as_execute_tool() {
    let exporter = Exporter::start();
    let leaf = MockService::sequence(vec![Ok(ToolOutput::text("42"))]);
    let request = call(&tool("add").build(), json!({})).with_id("call_7");
    let around = tracing::info_span!("agent");
    tracing::Instrument::instrument(send(&leaf, request), around.clone())
        .await
        .unwrap();
    drop(around);
    let (agent, call) = (exporter.one("agent"), exporter.one("execute_tool add"));
    assert_eq!(parent_of(&call), context_of(&agent).1);
    assert_eq!(call.span_kind, SpanKind::Internal);
    let own = [
        ("gen_ai.tool.call.id", "call_7"),
        ("gen_ai.tool.type", "function"),
    ];
    assert_has(&call, &own);
    assert!(!attributes(&call).contains_key("mcp.method.name"));
    // nothing was sent anywhere
    let attempt = exporter.one("attempt");
    assert_eq!(attempt.span_kind, SpanKind::Internal);
    assert!(!attributes(&attempt).contains_key("mcp.method.name"));
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_a_client_of_its_own() {
    let exporter = Exporter::start();
    let carried = Arc::default();
    let leaf = remote(Arc::clone(&carried), |n| match n {
        1 => {
            let kind = ErrorKind::ConnectionLost;
            Err(ToolError::new(kind, Delivery::Unknown, "gone"))
        }
        _ => Ok(ToolOutput::text("42")),
    });
    let attempts = AttemptSpanLayer::new().layer(leaf);
    // stands in for a retry layer
    let twice = tower::service_fn(move |call: ToolCall| {
        let attempts = attempts.clone();
        async move {
            if let Ok(answer) = attempts.clone().oneshot(call.clone()).await {
                return Ok(answer);
            }
            let mut again = call;
            again.attempt_mut().advance(None);
            attempts.oneshot(again).await
        }
    });
    CallSpanLayer::new()
        .layer(twice)
        .oneshot(inbound())
        .await
        .unwrap();
    let spans = exporter.spans();
    let [first, second, call] = &spans[..] else {
        panic!("three spans: {spans:?}");
    };
    let (_, call_id) = context_of(call);
    assert_eq!((parent_of(first), parent_of(second)), (call_id, call_id));
    assert!(is_error(first) && !is_error(second) && !is_error(call));
    let number = "callward.attempt.number";
    let of_first = [("error.type", "connection_lost"), (number, "1")];
    assert_has(first, &of_first);
    assert_has(second, &[(number, "2"), ("jsonrpc.request.id", "41")]);
    let parents: Vec<_> = carried.lock().iter().map(TraceContext::parent_id).collect();
    assert_eq!(parents, [context_of(first).1, context_of(second).1]);
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
        let outcome = answer.clone();
        let leaf = remote(Arc::default(), move |_| outcome.clone());
        let _ = send(&leaf, inbound()).await;
        let spans = exporter.spans();
        let [attempt, call] = &spans[..] else {
            panic!("two spans: {spans:?}");
        };
        assert!(is_error(attempt), "{code:?}");
        assert_eq!(is_error(call), is_ours, "{code:?}");
        for span in [attempt, call] {
            let code_of = attributes(span).remove("rpc.response.status_code");
            assert_eq!(code_of.as_deref(), code);
        }
        let error_type = attributes(call).remove("error.type");
        assert_eq!(error_type.is_some(), is_ours);
        assert_has(attempt, &[("error.type", code.unwrap_or("tool_error"))]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_here_has_our_code_and_no_request() {
    let exporter = Exporter::start();
    let open = ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, "open");
    let leaf = MockService::sequence(vec![Err(open)]);
    let _ = send(&leaf, inbound()).await;
    let call = exporter.one("tools/call read_order");
    assert!(is_error(&call));
    let code = ("rpc.response.status_code", "-32010");
    assert_has(&call, &[code, ("error.type", "no_eligible_server")]);
    let attempt = exporter.one("attempt");
    assert_eq!(attempt.span_kind, SpanKind::Internal);
    assert!(!attributes(&attempt).contains_key("rpc.response.status_code"));
}

#[tokio::test(start_paused = true)]
async fn a_background_attempt_continues_the_trace_of_its_call() {
    let exporter = Exporter::start();
    let leaf = MockService::counting();
    send(&leaf, inbound()).await.unwrap();
    // a refresh runs in a task of its own, outside of any span
    let seen = leaf.seen()[0].in_background(callward_core::Purpose::Refresh);
    let refresh = AttemptSpanLayer::new().layer(leaf.clone());
    refresh.oneshot(seen).await.unwrap();
    let call = exporter.one("tools/call read_order");
    let spans = exporter.spans();
    let last = spans.last().unwrap();
    assert_eq!(parent_of(last), context_of(&call).1);
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_exported_as_a_client_span() {
    let exporter = Exporter::start();
    let server: ServerId = "orders-eu".parse().unwrap();
    let span = DiscoverySpan::begin(&server, DiscoveryPurpose::Discovery);
    let watch = span.watch().unwrap();
    let mut carried = Vec::new();
    for id in [1, 2] {
        let request = Outbound::new(Transport::Pipe, id);
        carried.extend(watch.sends(&request));
    }
    span.follow(std::future::ready(Ok(Vec::new())))
        .await
        .unwrap();
    let listing = exporter.one("tools/list");
    assert_eq!(listing.span_kind, SpanKind::Client);
    assert_has(
        &listing,
        &[
            ("mcp.method.name", "tools/list"),
            ("callward.server", "orders-eu"),
            ("callward.discovery.purpose", "discovery"),
            ("callward.discovery.tools", "0"),
            ("jsonrpc.request.id", "1"),
            ("network.transport", "pipe"),
        ],
    );
    assert_eq!(carried.len(), 2);
    let (_, own) = context_of(&listing);
    assert!(carried.iter().all(|sent| sent.parent_id() == own));

    let span = DiscoverySpan::begin(&server, DiscoveryPurpose::Probe);
    drop(span.follow(std::future::pending()));
    let spans = exporter.spans();
    assert_has(spans.last().unwrap(), &[("error.type", "cancelled")]);
}
