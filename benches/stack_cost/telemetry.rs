//! Spans and metrics around a service, sent to a collector that is a thread of this process.

use std::sync::Arc;

use callward::telemetry::export::OtlpConfig;
use callward::telemetry::{AttemptSpanLayer, CallSpanLayer, Metrics, Sampling};
use callward::{ToolCall, ToolService};
use callward_testkit::collector::Collector;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::runtime::Builder;
use tower::Layer;
use tracing::{Dispatch, dispatcher};
use tracing_subscriber::layer::SubscriberExt;

use crate::layers::{leaf, once};
use crate::measure::Subject;
use crate::rows::{DISTINCT, Part, Row};

/// Returns a row for each way to be watched, of a call span with an attempt span in it.
pub(crate) fn watched(call: &ToolCall) -> Vec<Row> {
    let registry = Dispatch::new(tracing_subscriber::registry());
    let subject = seen_by(&registry, &spanned(Sampling::always(), None), call, ());
    let mut rows = vec![Row::new(
        "a registry and nothing else",
        Part::Watched,
        subject,
    )];
    for (share, percent) in [(0.0, "0"), (0.01, "1"), (1.0, "100")] {
        for (is_measured, with) in [(false, ""), (true, ", and metrics")] {
            let name = format!("exporting {percent} % of calls{with}");
            let subject = exporting(share, is_measured, call);
            rows.push(Row::new(name, Part::Watched, subject));
        }
    }
    rows
}

fn spanned(sampling: Sampling, metrics: Option<Arc<Metrics>>) -> impl ToolService {
    let mut outer = CallSpanLayer::default().with_sampling(sampling);
    if let Some(metrics) = metrics {
        outer = outer.with_metrics(metrics);
    }
    outer.layer(AttemptSpanLayer::default().layer(leaf()))
}

fn exporting(share: f64, is_measured: bool, call: &ToolCall) -> Subject {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let collector = runtime.block_on(Collector::start());
    let config = OtlpConfig::new(collector.endpoint()).unwrap();
    let exporter = config.start().unwrap();
    let provider = SdkMeterProvider::builder()
        .with_reader(exporter.metric_reader().unwrap().unwrap())
        .build();
    let metrics = Arc::new(Metrics::new(&provider.meter("bench")));
    let sampling = Sampling::ratio(share).unwrap();
    let service = spanned(sampling, is_measured.then_some(metrics));
    let exporting = Dispatch::new(tracing_subscriber::registry().with(exporter.layer()));
    let needed = (provider, exporter, collector, runtime);
    seen_by(&exporting, &service, call, needed)
}

/// Calls of a service whose spans this subscriber sees. What it needs is kept as long.
fn seen_by(
    subscriber: &Dispatch,
    service: &impl ToolService,
    call: &ToolCall,
    needed: impl Sized + 'static,
) -> Subject {
    let (subscriber, once) = (subscriber.clone(), once(service, call));
    Subject::new(DISTINCT, move || {
        let _needs = &needed;
        let (subscriber, mut once) = (subscriber.clone(), once());
        Box::new(move |runtime, numbers| {
            dispatcher::with_default(&subscriber, || once(runtime, numbers))
        })
    })
}
