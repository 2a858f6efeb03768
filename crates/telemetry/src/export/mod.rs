//! Sends spans and metrics to a collector: OTLP over HTTP, as protobuf.
//!
//! Behind the feature `otlp`. [`OtlpConfig::start`] starts an [`Exporter`] on the SDK's batch
//! processor. Add its [`layer`](Exporter::layer) to a `tracing` subscriber and its
//! [`metric_reader`](Exporter::metric_reader) to a meter provider.
//!
//! **Rule.** No call waits for a collector. Ended spans wait in a bounded queue that a thread of
//! the SDK sends in batches; a full queue drops further spans. Each span is counted once, in
//! [`SpanCounts`]. [`Exporter::shutdown`] sends what waits, within a limit, and drops the rest.
//!
//! ```
//! use callward_telemetry::export::OtlpConfig;
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let exporter = OtlpConfig::new("http://localhost:4318")?.start()?;
//! let subscriber = tracing_subscriber::registry().with(exporter.layer());
//! // tracing::subscriber::set_global_default(subscriber)?;
//! # drop(subscriber);
//! let counts = exporter.shutdown(std::time::Duration::from_secs(2)).await;
//! assert_eq!(counts.dropped, 0);
//! # Ok(())
//! # }
//! ```

mod client;
mod config;
mod counts;
mod env;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::PeriodicReader;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider,
};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::metrics::observe_counter;
use crate::names;
use client::Client;
use counts::{Counted, SpanQueue};

pub use config::{InvalidOtlp, OtlpConfig};
pub use counts::SpanCounts;
pub use env::share_from_env;

impl OtlpConfig {
    /// Starts the thread that sends spans.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if no HTTP client or exporter can be built.
    pub fn start(self) -> Result<Exporter, InvalidOtlp> {
        let config = self.bounded();
        let client = Client::build(&config).map_err(not_built)?;
        let queue = Arc::new(SpanQueue::new(config.queue));
        // the decision is made before a span is built, see `Sampling`
        let mut provider = SdkTracerProvider::builder()
            .with_resource(config.resource())
            .with_sampler(Sampler::AlwaysOn);
        if let Some(url) = config.traces_url() {
            let exporter = SpanExporter::builder().with_http();
            let exporter = configured(exporter, url, &client, &config).build();
            let batches = BatchConfigBuilder::default()
                .with_max_queue_size(config.queue)
                .with_max_export_batch_size(config.batch)
                .with_scheduled_delay(config.interval)
                .build();
            let exporter = Counted::new(exporter.map_err(not_built)?, &queue);
            let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches);
            provider = provider.with_span_processor(Counted::new(processor.build(), &queue));
        }
        Ok(Exporter {
            provider: provider.build(),
            config,
            client,
            queue,
        })
    }
}

/// A running exporter.
///
/// Dropping it sends what waits and blocks meanwhile, for at most 5 s;
/// [`shutdown`](Self::shutdown) does not block.
#[derive(Debug)]
pub struct Exporter {
    config: OtlpConfig,
    client: Client,
    provider: SdkTracerProvider,
    queue: Arc<SpanQueue>,
}

impl Exporter {
    /// Returns the layer that turns this runtime's spans into OpenTelemetry's.
    ///
    /// It ignores spans of other crates, and takes this runtime's events from level `INFO` on. The
    /// filter applies to this layer alone.
    #[must_use]
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let sends = self.config.traces.is_some();
        sends.then(|| {
            tracing_opentelemetry::layer()
                .with_tracer(self.provider.tracer(names::TARGET))
                // each of these costs an attribute per span, or reads the clock whenever it is
                // entered
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_level(false)
                .with_tracked_inactivity(false)
                .with_context_activation(false)
                .with_filter(filter_fn(is_exported))
        })
    }

    /// Returns the attributes of the service, for a meter provider beside this exporter.
    #[must_use]
    pub fn resource(&self) -> Resource {
        self.config.resource()
    }

    /// Returns the reader that sends metrics; `None` if metrics are not sent.
    ///
    /// Shut its meter provider down before this exporter.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if no exporter can be built.
    pub fn metric_reader(&self) -> Result<Option<PeriodicReader<MetricExporter>>, InvalidOtlp> {
        let Some(url) = self.config.metrics_url() else {
            return Ok(None);
        };
        let exporter = MetricExporter::builder().with_http();
        let exporter = configured(exporter, url, &self.client, &self.config).build();
        let reader = PeriodicReader::builder(exporter.map_err(not_built)?);
        let reader = reader.with_interval(self.config.metrics_interval);
        Ok(Some(reader.build()))
    }

    /// Adds [`names::metric::TELEMETRY_SPANS`] to a meter.
    pub fn observe(&self, meter: &Meter) {
        let queue = self.queue.clone();
        observe_counter(meter, names::metric::TELEMETRY_SPANS, move |series| {
            let counts = queue.counts();
            for (result, count) in [
                ("exported", counts.exported),
                ("dropped", counts.dropped),
                ("failed", counts.failed),
            ] {
                series.add(count, [KeyValue::new(names::metric::label::RESULT, result)]);
            }
        });
    }

    /// Returns the outcomes of spans so far.
    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.queue.counts()
    }

    /// Sends what waits, within this limit, and ends. A span that is not sent by then is dropped,
    /// and so is one that ends later. A second call only returns the counts.
    pub async fn shutdown(&self, within: Duration) -> SpanCounts {
        let provider = self.provider.clone();
        let ending = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(within));
        // an error means that spans were lost, and those are counted
        let _ = ending.await;
        self.counts()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // fails if it was shut down before
        let _ = self.provider.shutdown_with_timeout(DROP_LIMIT);
    }
}

fn configured<B: WithExportConfig + WithHttpConfig>(
    exporter: B,
    url: &str,
    client: &Client,
    config: &OtlpConfig,
) -> B {
    exporter
        .with_http_client(client.clone())
        .with_endpoint(url)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(config.timeout)
}

/// How long dropping an exporter may block.
const DROP_LIMIT: Duration = Duration::from_secs(5);

fn not_built(error: impl Display) -> InvalidOtlp {
    let expected = "expected settings that an exporter can be built from";
    InvalidOtlp::new("endpoint", &error.to_string(), expected)
}

fn is_exported(of: &Metadata<'_>) -> bool {
    if of.is_span() {
        return of.target() == names::TARGET;
    }
    *of.level() <= Level::INFO && of.target().starts_with(names::TARGET)
}
