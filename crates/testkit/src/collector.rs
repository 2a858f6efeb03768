//! An OpenTelemetry collector: OTLP over real HTTP, as protobuf. It keeps what it takes, and
//! behaves as badly as a test asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags};
use parking_lot::Mutex;
use prost::Message;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// How the collector answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mood {
    /// It takes everything.
    #[default]
    Takes,
    /// It takes nothing, and answers with this status.
    Refuses(u16),
    /// It does not answer until its mood changes.
    Hangs,
}

/// A span as it came.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The attributes of the service that sent it.
    pub resource: BTreeMap<String, Value>,
    /// In hexadecimal digits.
    pub trace: String,
    /// In hexadecimal digits.
    pub id: String,
    /// In hexadecimal digits; none for a root.
    pub parent: Option<String>,
    /// Whether the parent is known to be of another process.
    pub parent_is_remote: bool,
    /// What it is called.
    pub name: String,
    /// As the protocol names it, such as `Server`.
    pub kind: String,
    /// What is said of it.
    pub attributes: BTreeMap<String, Value>,
    /// As the protocol names it: `Unset`, `Ok` or `Error`.
    pub status: String,
    /// The names of its events.
    pub events: Vec<String>,
}

impl Collected {
    /// Returns the name of the service that sent it.
    pub fn service(&self) -> &str {
        self.resource["service.name"].as_str().unwrap()
    }
}

/// A listening collector. It ends when it is dropped.
#[derive(Debug)]
pub struct Collector {
    endpoint: String,
    seen: Arc<Seen>,
    _server: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Seen {
    mood: watch::Sender<Mood>,
    spans: Mutex<Vec<Collected>>,
    metrics: Mutex<BTreeMap<String, Vec<Point>>>,
    headers: Mutex<Vec<HeaderMap>>,
    answers: Mutex<Vec<u16>>,
    changed: Notify,
}

/// One series of a metric, as it was last sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What tells it from others of the metric.
    pub attributes: BTreeMap<String, Value>,
    /// The number, or how often a histogram was recorded to.
    pub value: f64,
}

impl Collector {
    /// Listens on a port of its own.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Seen>::default();
        let routes = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(seen.clone());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            endpoint,
            seen,
            _server: server,
        }
    }

    /// Returns where it listens, without a path.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Answers so from now on; requests that hang are answered so too.
    pub fn behave(&self, mood: Mood) {
        self.seen.mood.send_replace(mood);
    }

    /// Returns the spans it took, in the order they came.
    pub fn spans(&self) -> Vec<Collected> {
        self.seen.spans.lock().clone()
    }

    /// Returns a metric's series as they were last sent; none if it was never sent.
    pub fn metric(&self, name: &str) -> Vec<Point> {
        let metrics = self.seen.metrics.lock();
        metrics.get(name).cloned().unwrap_or_default()
    }

    /// Returns the names of the metrics it took.
    pub fn metrics(&self) -> Vec<String> {
        self.seen.metrics.lock().keys().cloned().collect()
    }

    /// Returns the headers of all requests, answered or not.
    pub fn requests(&self) -> Vec<HeaderMap> {
        self.seen.headers.lock().clone()
    }

    /// Returns the statuses it answered with.
    pub fn answers(&self) -> Vec<u16> {
        self.seen.answers.lock().clone()
    }

    /// Looks whenever something came or was answered, until there is what is looked for.
    pub async fn until<T>(&self, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            let changed = self.seen.changed.notified();
            if let Some(found) = look(self) {
                return found;
            }
            changed.await;
        }
    }

    /// Waits until it took this many spans, and returns all it has.
    pub async fn until_spans(&self, count: usize) -> Vec<Collected> {
        self.until(|now| {
            let spans = now.spans();
            (spans.len() >= count).then_some(spans)
        })
        .await
    }
}

/// Returns the spans from the root to the one with this id, by their parents.
///
/// # Panics
///
/// If a parent is missing between them, or there is a circle.
pub fn path_to<'a>(spans: &'a [Collected], trace: &str, id: &str) -> Vec<&'a Collected> {
    let mut path = Vec::new();
    let mut next = Some(id.to_owned());
    while let Some(id) = next {
        let Some(span) = spans
            .iter()
            .find(|span| span.trace == trace && span.id == id)
        else {
            // the parent of the outermost is the caller's span, which is not sent here
            break;
        };
        assert!(path.len() < spans.len(), "a circle of parents: {spans:#?}");
        path.push(span);
        next = span.parent.clone();
    }
    path.reverse();
    path
}

async fn traces(State(seen): State<Arc<Seen>>, request: Request) -> Response {
    let take = |body: &[u8]| {
        let request = ExportTraceServiceRequest::decode(body).ok()?;
        let spans = request.resource_spans.into_iter().flat_map(|of| {
            let resource = map(of.resource.unwrap_or_default().attributes);
            let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.map(move |span| collected(&resource, span))
        });
        seen.spans.lock().extend(spans);
        Some(())
    };
    answer(&seen, request, take, &ExportTraceServiceResponse::default()).await
}

async fn metrics(State(seen): State<Arc<Seen>>, request: Request) -> Response {
    let take = |body: &[u8]| {
        let request = ExportMetricsServiceRequest::decode(body).ok()?;
        let scopes = request.resource_metrics.into_iter();
        let metrics = scopes
            .flat_map(|of| of.scope_metrics)
            .flat_map(|scope| scope.metrics);
        for metric in metrics {
            let points = metric.data.map(points).unwrap_or_default();
            seen.metrics.lock().insert(metric.name, points);
        }
        Some(())
    };
    answer(
        &seen,
        request,
        take,
        &ExportMetricsServiceResponse::default(),
    )
    .await
}

/// Answers as the mood is, once it is one to answer in.
async fn answer(
    seen: &Seen,
    request: Request,
    take: impl FnOnce(&[u8]) -> Option<()> + Send,
    reply: &impl Message,
) -> Response {
    let (head, body) = request.into_parts();
    // the only content type of OTLP over HTTP that is not JSON
    let protobuf = "application/x-protobuf";
    let kind = head.headers.get(header::CONTENT_TYPE);
    let is_protobuf = kind.is_some_and(|kind| kind == protobuf);
    seen.headers.lock().push(head.headers);
    seen.changed.notify_waiters();
    let body = to_bytes(body, 64 << 20).await.unwrap_or_default();
    let mut moods = seen.mood.subscribe();
    let mood = moods.wait_for(|mood| *mood != Mood::Hangs).await;
    let answer = match mood.map_or(Mood::Takes, |mood| *mood) {
        Mood::Refuses(status) => StatusCode::from_u16(status).unwrap().into_response(),
        _ if is_protobuf && take(&body).is_some() => {
            let kind = [(header::CONTENT_TYPE, protobuf)];
            (kind, reply.encode_to_vec()).into_response()
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    };
    seen.answers.lock().push(answer.status().as_u16());
    seen.changed.notify_waiters();
    answer
}

fn collected(resource: &BTreeMap<String, Value>, span: Span) -> Collected {
    let kind = format!("{:?}", span.kind());
    let status = span.status.unwrap_or_default();
    Collected {
        resource: resource.clone(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)),
        parent_is_remote: span.flags & SpanFlags::ContextIsRemoteMask as u32 != 0,
        name: span.name,
        kind,
        attributes: map(span.attributes),
        status: format!("{:?}", status.code()),
        events: span.events.into_iter().map(|event| event.name).collect(),
    }
}

fn points(data: Data) -> Vec<Point> {
    let point = |attributes, value| Point {
        attributes: map(attributes),
        value,
    };
    let numbers = match data {
        Data::Gauge(gauge) => gauge.data_points,
        Data::Sum(sum) => sum.data_points,
        Data::Histogram(histogram) => {
            let points = histogram.data_points.into_iter();
            return points
                .map(|p| point(p.attributes, p.count as f64))
                .collect();
        }
        Data::ExponentialHistogram(_) | Data::Summary(_) => Vec::new(),
    };
    let number = |value| match value {
        Some(Number::AsDouble(number)) => number,
        Some(Number::AsInt(number)) => number as f64,
        None => f64::NAN,
    };
    let points = numbers.into_iter();
    points
        .map(|p| point(p.attributes, number(p.value)))
        .collect()
}

fn map(attributes: Vec<KeyValue>) -> BTreeMap<String, Value> {
    let pairs = attributes.into_iter();
    pairs.map(|pair| (pair.key, value(pair.value))).collect()
}

fn value(any: Option<AnyValue>) -> Value {
    match any.and_then(|any| any.value) {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(flag)) => json!(flag),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::ArrayValue(list)) => {
            let values = list.values.into_iter();
            values.map(|item| value(Some(item))).collect()
        }
        Some(other) => json!(format!("{other:?}")),
        None => Value::Null,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
