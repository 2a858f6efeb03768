//! The rows of the table.

use std::sync::Arc;

use callward_telemetry::export::OtlpConfig;
use callward_telemetry::{AttemptSpan, AttemptSpanLayer, CallSpan, CallSpanLayer};
use callward_telemetry::{Metrics, Sampling};
use callward_testkit::AtOnce;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{Span as _, Tracer, TracerProvider};
use opentelemetry::{Context as OtelContext, KeyValue};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tower::Layer;
use tracing_subscriber::layer::SubscriberExt;

use crate::calls::{self, Apart};
use crate::collector::Collector;
use crate::measure::Subject;

/// One row.
pub(crate) struct Row {
    pub(crate) name: String,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// Without a subscriber.
    Off,
    /// The same, without attempts.
    CallSpan,
    /// A subscriber that does nothing.
    Registry,
    /// An exporter of this share of calls, with metrics or without.
    Exporting(f64, bool),
    /// The usual way: every span is built, and the SDK drops 99 of 100.
    Bridge,
    /// The same without `tracing`.
    Api,
}

/// All rows.
pub(crate) fn all() -> Vec<Row> {
    let row = |name: &str, what| Row {
        name: name.to_owned(),
        what,
    };
    let mut rows = vec![
        row("off: no subscriber", What::Off),
        row("off: its call span alone", What::CallSpan),
        row("a registry and nothing else", What::Registry),
    ];
    for (share, percent) in [(0.0, "0"), (0.01, "1"), (1.0, "100")] {
        for (is_measured, with) in [(false, ""), (true, ", and metrics")] {
            rows.push(Row {
                name: format!("exporting {percent} % of calls{with}"),
                what: What::Exporting(share, is_measured),
            });
        }
    }
    rows.extend([
        row(
            "peer: the same spans, tracing-opentelemetry, its sampler at 1 %",
            What::Bridge,
        ),
        row(
            "peer: OpenTelemetry's API directly, two spans, its sampler at 1 %",
            What::Api,
        ),
    ]);
    rows
}

/// The name of [`alone`].
pub(crate) const ALONE: &str = "the service alone";

/// The service alone, which every row is measured beside.
pub(crate) fn alone() -> Subject {
    Subject::new(calls::of(calls::leaf()))
}

impl Row {
    pub(crate) fn subject(&self) -> Subject {
        match self.what {
            What::Off => Subject::new(calls::of(both(Sampling::always(), None))),
            What::CallSpan => Subject::new(calls::of(CallSpanLayer::new().layer(calls::leaf()))),
            What::Registry => Subject::new(calls::of(both(Sampling::always(), None)))
                .seen_by(tracing_subscriber::registry()),
            What::Exporting(share, is_measured) => exporting(share, is_measured),
            What::Bridge => {
                let tracer = usual().tracer("bench");
                let bridge = tracing_opentelemetry::layer().with_tracer(tracer);
                Subject::new(calls::of(both(Sampling::always(), None)))
                    .seen_by(tracing_subscriber::registry().with(bridge))
            }
            What::Api => api(),
        }
    }
}

/// A call span with an attempt span in it.
fn both(sampling: Sampling, metrics: Option<Arc<Metrics>>) -> CallSpan<AttemptSpan<Apart<AtOnce>>> {
    let mut outer = CallSpanLayer::new().with_sampling(sampling);
    if let Some(metrics) = metrics {
        outer = outer.with_metrics(metrics);
    }
    outer.layer(AttemptSpanLayer::new().layer(calls::leaf()))
}

fn exporting(share: f64, is_measured: bool) -> Subject {
    let collector = Collector::start();
    let mut config = OtlpConfig::new(&collector.endpoint).unwrap();
    config.queue = 1 << 16;
    let exporter = config.start().unwrap();
    let provider = SdkMeterProvider::builder()
        .with_reader(exporter.metric_reader().unwrap().unwrap())
        .build();
    let metrics = Arc::new(Metrics::new(&provider.meter("bench")));
    let metrics = is_measured.then_some(metrics);
    let sampling = Sampling::ratio(share).unwrap();
    Subject::new(calls::of(both(sampling, metrics)))
        .seen_by(tracing_subscriber::registry().with(exporter.layer()))
        .ended_by(move || {
            let _ = provider.shutdown();
            drop(exporter);
            drop(collector);
        })
}

fn usual() -> SdkTracerProvider {
    let sampler = Sampler::TraceIdRatioBased(0.01);
    SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .build()
}

fn api() -> Subject {
    let provider = usual();
    let tracer = provider.tracer("bench");
    let two_spans = move || {
        let mut outer = tracer.start("tools/call read");
        if outer.is_recording() {
            outer.set_attribute(KeyValue::new("gen_ai.tool.name", "read"));
        }
        let around = OtelContext::new().with_value(0_u8);
        let mut inner = tracer.start_with_context("attempt", &around);
        if inner.is_recording() {
            inner.set_attribute(KeyValue::new("callward.attempt.number", 1));
        }
        inner.end();
        outer.end();
    };
    Subject::new(move |calls| (0..calls).for_each(|_| two_spans())).ended_by(move || drop(provider))
}
