//! Subscribers and exporters that keep what they get.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use callward_core::{CacheStatus, CallFacts, ServerId, ToolCall, ToolError, ToolOutput};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, Metrics};
use callward_testkit::{MockService, call, tool};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use parking_lot::Mutex;
use tower::{Layer as _, ServiceExt};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// One span, as a subscriber saw it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(crate) parent: Option<&'static str>,
    /// The fields that it may have.
    pub(crate) declared: Vec<&'static str>,
    pub(crate) fields: BTreeMap<&'static str, String>,
    pub(crate) entered: usize,
    pub(crate) inside: usize,
    pub(crate) closed: bool,
}

impl Seen {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub(crate) fn assert_has(&self, expected: &[(&str, &str)]) {
        for (name, value) in expected {
            assert_eq!(self.field(name), Some(*value), "{name} of {self:?}");
        }
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

type Spans = Arc<Mutex<Vec<(Id, Seen)>>>;

/// Keeps every span of the current thread until dropped.
pub(crate) struct Capture {
    spans: Spans,
    _guard: DefaultGuard,
}

struct Keep(Spans);

impl Keep {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut spans = self.0.lock();
        // ids are used again after a span is closed
        let open = spans.iter_mut().rev().find(|(other, _)| other == id);
        change(&mut open.unwrap().1);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keep {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let metadata = attributes.metadata();
        let mut seen = Seen {
            name: metadata.name(),
            target: metadata.target(),
            parent: ctx.span(id).and_then(|span| Some(span.parent()?.name())),
            declared: metadata.fields().iter().map(|field| field.name()).collect(),
            ..Seen::default()
        };
        attributes.record(&mut seen);
        self.0.lock().push((id.clone(), seen));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |seen| values.record(seen));
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        panic!("the layers make spans only");
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        self.change(id, |seen| {
            seen.entered += 1;
            seen.inside += 1;
        });
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.change(id, |seen| seen.inside -= 1);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |seen| seen.closed = true);
    }
}

/// Keeps two dispatchers for as long as the tests run. While there is one at most, `tracing` asks
/// only the thread that meets a span first whether the span is enabled, and keeps that answer: a
/// test without a subscriber would disable the span for the test beside it.
pub(crate) fn keep_dispatchers() {
    static KEPT: LazyLock<[Dispatch; 2]> =
        LazyLock::new(|| [(); 2].map(|()| Dispatch::new(Registry::default())));
    LazyLock::force(&KEPT);
}

impl Capture {
    pub(crate) fn start() -> Self {
        keep_dispatchers();
        let spans = Spans::default();
        let subscriber = tracing_subscriber::registry().with(Keep(spans.clone()));
        Self {
            spans,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The spans of this name, in the order they began.
    pub(crate) fn all(&self, name: &str) -> Vec<Seen> {
        let spans = self.spans.lock();
        let of_name = spans.iter().filter(|(_, seen)| seen.name == name);
        of_name.map(|(_, seen)| seen.clone()).collect()
    }

    pub(crate) fn one(&self, name: &str) -> Seen {
        only(self.all(name))
    }

    /// Everything that was recorded, in one text.
    pub(crate) fn text(&self) -> String {
        let spans = self.spans.lock();
        let fields = spans.iter().map(|(_, seen)| format!("{:?}", seen.fields));
        fields.collect()
    }
}

fn only<T: Debug>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The server that [`server`] says was chosen.
pub(crate) fn orders_eu() -> ServerId {
    ServerId::new("orders-eu").unwrap()
}

/// A call of a tool without hints.
pub(crate) fn plain() -> ToolCall {
    call(&tool("x").build(), serde_json::json!({}))
}

/// Stands in for the layers inside of a call span: notes what they would, and answers at once.
pub(crate) fn noting(note: impl Fn(&mut CallFacts) + Send + Sync + 'static) -> MockService {
    MockService::new(move |call: ToolCall, _| {
        if let Some(record) = &call.record {
            record.with(&note);
        }
        std::future::ready(Ok(ToolOutput::text("42")))
    })
}

/// A server behind cache and router that answers after 250 ms.
pub(crate) fn miss() -> MockService {
    server(CacheStatus::Miss, |_| Ok(ToolOutput::text("42")))
}

/// Stands in for cache and router: writes into the record what they would.
pub(crate) fn server(
    cache: CacheStatus,
    answer: impl Fn(usize) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> MockService {
    MockService::new(move |call: ToolCall, n| {
        if let Some(record) = &call.record {
            record.with(|facts| {
                facts.cache = cache;
                facts.server = Some((orders_eu(), "round robin"));
            });
        }
        let answer = answer(n);
        async move {
            tokio::time::sleep(Duration::from_millis(250)).await;
            answer
        }
    })
}

/// Sends a call through both layers.
pub(crate) async fn send(
    layer: &CallSpanLayer,
    server: &MockService,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let attempts = AttemptSpanLayer::default().layer(server.clone());
    layer.layer(attempts).oneshot(call).await
}

/// One data point: its attributes, how many values it holds, and their sum.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) unit: String,
    pub(crate) by: BTreeMap<String, String>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) bounds: Vec<f64>,
}

/// A meter whose data points can be looked at.
pub(crate) struct Meters {
    provider: SdkMeterProvider,
    exported: InMemoryMetricExporter,
    pub(crate) metrics: Arc<Metrics>,
}

fn attributes<'a>(by: impl Iterator<Item = &'a KeyValue>) -> BTreeMap<String, String> {
    by.map(|pair| (pair.key.to_string(), pair.value.to_string()))
        .collect()
}

impl Meters {
    pub(crate) fn start() -> Self {
        keep_dispatchers();
        let exported = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exported.clone())
            .build();
        Self {
            metrics: Arc::new(Metrics::new(&provider.meter("test"))),
            provider,
            exported,
        }
    }

    /// All data points of this metric, but for those that are there with 0 from the start.
    pub(crate) fn points(&self, name: &str) -> Vec<Point> {
        self.provider.force_flush().unwrap();
        let exported = self.exported.get_finished_metrics().unwrap();
        let mut points = Vec::new();
        let scopes = exported.last().unwrap().scope_metrics();
        for metric in scopes.flat_map(|scope| scope.metrics()) {
            if metric.name() != name {
                continue;
            }
            let point = |by, count, sum, bounds| Point {
                unit: metric.unit().to_owned(),
                by,
                count,
                sum,
                bounds,
            };
            match metric.data() {
                AggregatedMetrics::F64(MetricData::Histogram(data)) => {
                    points.extend(data.data_points().map(|p| {
                        let by = attributes(p.attributes());
                        point(by, p.count(), p.sum(), p.bounds().collect())
                    }));
                }
                AggregatedMetrics::U64(MetricData::Sum(data)) => {
                    points.extend(data.data_points().map(|p| {
                        let by = attributes(p.attributes());
                        point(by, p.value(), 0.0, Vec::new())
                    }));
                }
                other => panic!("a kind of metric that is not used: {other:?}"),
            }
        }
        points.retain(|point| point.count > 0);
        points
    }

    pub(crate) fn one(&self, name: &str) -> Point {
        only(self.points(name))
    }
}
