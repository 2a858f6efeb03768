//! Metrics: taken through OpenTelemetry, shown as Prometheus text.

use std::sync::Arc;
use std::time::Duration;

use callward::approval::questions::{Outcome, QuestionKind, Questions};
use callward::core::PeerObserver;
use callward::telemetry::export::Exporter;
use callward::telemetry::metrics::{Metrics, observe_counter, observe_gauge};
use callward::telemetry::names::metric::{
    APPROVAL_DELIVERIES, CALLS_IN_FLIGHT, Metric, QUESTIONS, label,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use tokio_util::task::TaskTracker;

use crate::auth::Refusals;
use crate::error::AppError;
use crate::output;
use crate::webhook;

/// How long the end waits for metrics, and then for spans, that were not sent yet.
const FLUSH: Duration = Duration::from_secs(2);

/// The registry of metrics.
pub(crate) struct Telemetry {
    registry: Registry,
    /// Instruments end with it.
    provider: SdkMeterProvider,
    exporter: Option<Exporter>,
    pub(crate) meter: Meter,
    /// What the stack writes into.
    pub(crate) metrics: Arc<Metrics>,
    /// What the endpoint counts.
    pub(crate) refusals: Refusals,
    /// What the webhook of approvals counts.
    pub(crate) deliveries: Counter<u64>,
}

impl Telemetry {
    /// Starts without any value; metrics are sent to a collector too, if there is one.
    ///
    /// # Errors
    ///
    /// [`AppError`] if an exporter cannot be registered.
    pub(crate) fn exporting(exporter: Option<Exporter>) -> Result<Self, AppError> {
        let registry = Registry::new();
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| AppError::Usage(format!("metrics cannot be exported: {error}")))?;
        let mut provider = SdkMeterProvider::builder().with_reader(prometheus);
        if let Some(exporter) = &exporter {
            provider = provider.with_resource(exporter.resource());
            if let Some(reader) = exporter.metric_reader()? {
                provider = provider.with_reader(reader);
            }
        }
        let provider = provider.build();
        let meter = provider.meter("callward");
        if let Some(exporter) = &exporter {
            exporter.observe(&meter);
        }
        let metrics = Arc::new(Metrics::new(&meter));
        let refusals = Refusals::new(&meter);
        let deliveries = counter(&meter, APPROVAL_DELIVERIES);
        for outcome in webhook::OUTCOMES {
            // it exists before the first delivery
            webhook::count(&deliveries, 0, outcome);
        }
        Ok(Self {
            registry,
            provider,
            exporter,
            meter,
            metrics,
            refusals,
            deliveries,
        })
    }

    /// Sends what was not sent yet, within a bounded time, and warns of what is lost.
    pub(crate) async fn finish(&self) {
        let Some(exporter) = &self.exporter else {
            return;
        };
        let provider = self.provider.clone();
        let metrics = tokio::task::spawn_blocking(move || provider.shutdown());
        // metrics that a collector does not take in time are not worth waiting for
        let _ = tokio::time::timeout(FLUSH, metrics).await;
        let spans = exporter.shutdown(FLUSH).await;
        if spans.lost() > 0 {
            output::warning(&format_args!(
                "{} of {} spans did not reach the collector: {} found no place in the queue or no \
                 time at the end, {} were not taken",
                spans.lost(),
                spans.lost() + spans.exported,
                spans.dropped,
                spans.failed
            ));
        }
    }

    /// Returns the observer of requests and sessions of MCP.
    pub(crate) fn observer(&self) -> Arc<dyn PeerObserver> {
        Arc::clone(&self.metrics) as Arc<dyn PeerObserver>
    }

    /// Adds the calls that are in flight.
    pub(crate) fn observe_calls(&self, calls: &TaskTracker) {
        let calls = calls.clone();
        observe_gauge(&self.meter, CALLS_IN_FLIGHT, move |series| {
            series.add(calls.len() as f64, []);
        });
    }

    /// Adds the questions, each series from the start.
    pub(crate) fn observe_questions(&self, questions: &Questions) {
        let questions = questions.clone();
        observe_counter(&self.meter, QUESTIONS, move |series| {
            let counts = questions.counts();
            for kind in QuestionKind::ALL {
                for outcome in Outcome::ALL {
                    let count = counts.get(&(*kind, *outcome)).copied();
                    let kind = KeyValue::new(label::KIND, kind.as_str());
                    let outcome = KeyValue::new(label::OUTCOME, outcome.as_str());
                    series.add(count.unwrap_or_default(), [kind, outcome]);
                }
            }
        });
    }

    /// Writes all values in Prometheus' text form.
    ///
    /// # Errors
    ///
    /// The exporter's own message.
    pub(crate) fn text(&self) -> Result<String, String> {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .map_err(|error| error.to_string())
    }
}

/// Makes a counter as the list of metrics describes it.
pub(crate) fn counter(meter: &Meter, metric: Metric) -> Counter<u64> {
    let counter = meter.u64_counter(metric.name).with_unit(metric.unit);
    counter.with_description(metric.description).build()
}
