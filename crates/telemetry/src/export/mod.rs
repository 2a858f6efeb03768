//! Sends spans and metrics to a collector: OTLP over HTTP, as protobuf.
//!
//! Behind the feature `otlp`. [`OtlpConfig`] says where to, and starts an [`Exporter`]: its
//! [`layer`](Exporter::layer) goes into a `tracing` subscriber, its
//! [`metric_reader`](Exporter::metric_reader) into a meter provider.
//!
//! **Rule.** No call ever waits for a collector. Spans that ended are put into a bounded queue; one
//! thread with a runtime of its own takes them from there in batches and sends them. A span that
//! finds no place is dropped. Every span that ended is counted in exactly one of
//! [`SpanCounts`]'s three numbers once it no longer waits, those that a collector refused in an answer
//! that is no failure among the failed.
//!
//! **Sampling.** Whoever builds a span wants it exported: the SDK's sampler is always on. The choice
//! is made before a span is built, because building one through the bridge costs a microsecond even
//! if it is thrown away.
//!
//! **Repeats.** A batch that was not taken is sent again as the [OTLP specification] says: after 429,
//! 502, 503, 504 and lost connections, with pauses, within the timeout.
//!
//! **The end.** [`Exporter::shutdown`] sends what still waits, for so long at most; then the rest is
//! dropped and counted. Dropping the exporter does the same.
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
//!
//! [OTLP specification]: https://opentelemetry.io/docs/specs/otlp/#failures-1

mod client;
mod config;
mod encode;
mod env;
mod queue;
mod wire;
mod worker;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http::HeaderMap;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::PeriodicReader;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, SpanExporter as _};
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::metrics::observe_counter;
use crate::names;
use client::{Client, Seen};
use encode::{Body, Encoder};
use queue::{Enqueue, Queue};
use worker::Sender;

pub use config::{InvalidOtlp, OtlpConfig};
pub use env::share_from_env;
pub use queue::SpanCounts;

impl OtlpConfig {
    /// Starts the thread that sends.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if there can be no such client, or no thread.
    pub fn start(self) -> Result<Exporter, InvalidOtlp> {
        Exporter::start(self.bounded())
    }
}

/// A running exporter. Dropped, it sends what still waits, for so long as
/// [`OtlpConfig::with_flush`] says, and blocks meanwhile: [`shutdown`](Self::shutdown) does not.
#[derive(Debug)]
pub struct Exporter {
    config: OtlpConfig,
    resource: Resource,
    provider: SdkTracerProvider,
    http: reqwest::Client,
    runtime: Handle,
    sending: Arc<Sending>,
}

/// What it takes to end the thread.
#[derive(Debug)]
struct Sending {
    queue: Arc<Queue>,
    abandon: Arc<Notify>,
    ended: Arc<Ended>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Ended {
    is: Mutex<bool>,
    changed: Condvar,
}

impl Exporter {
    fn start(config: OtlpConfig) -> Result<Self, InvalidOtlp> {
        let urls = [&config.traces, &config.metrics];
        let is_secret = urls
            .into_iter()
            .flatten()
            .any(|url| url.scheme() == "https");
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            InvalidOtlp::new("endpoint", error.to_string(), what)
        };
        let http = client::build(config.timeout, is_secret)
            .map_err(|error| failed("expected what an HTTP client can be built for", &error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed("expected a runtime", &error))?;
        let handle = runtime.handle().clone();
        let resource = config.resource();

        let (queue, waiting) = Queue::new(config.queue, config.batch);
        let (seen, abandon) = (Arc::<Seen>::default(), Arc::new(Notify::new()));
        let body = Body::default();
        let client = Client::new(
            http.clone(),
            handle.clone(),
            config.headers.clone(),
            body.clone(),
            seen.clone(),
        );
        // without a place for spans none is made, so this one is never asked
        let url = config
            .traces_url()
            .unwrap_or("http://localhost:4318/v1/traces");
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(config.timeout)
            .build()
            .map_err(|error| failed("expected what an exporter can be built for", &error))?;
        exporter.set_resource(&resource);
        let sender = Sender {
            queue: queue.clone(),
            exporter: Encoder::new(exporter, resource.clone(), body),
            seen,
            timeout: config.timeout,
            abandon: abandon.clone(),
        };
        let sending = worker::run(sender, waiting, config.interval);
        let ended = Arc::<Ended>::default();
        let end = ended.clone();
        let thread = std::thread::Builder::new()
            .name("otlp".into())
            .spawn(move || {
                let _end = TellEnd(end);
                runtime.block_on(sending);
            })
            .map_err(|error| failed("expected a thread", &error))?;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.clone())
            .with_sampler(Sampler::AlwaysOn)
            .with_span_processor(Enqueue(queue.clone()))
            .build();
        Ok(Self {
            config,
            resource,
            provider,
            http,
            runtime: handle,
            sending: Arc::new(Sending {
                queue,
                abandon,
                ended,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Returns the layer that turns this runtime's spans into OpenTelemetry's. Spans of other crates
    /// are left to other layers; of events within spans, those of this runtime from level `INFO` on
    /// are taken along.
    ///
    /// The filter belongs to this layer alone, so other layers of the same subscriber see what they
    /// did before.
    #[must_use]
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let sends = self.config.traces.is_some();
        sends.then(|| {
            tracing_opentelemetry::layer()
                .with_tracer(self.tracer())
                // each costs an attribute a span, or a look at the clock each time it is entered
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_level(false)
                .with_tracked_inactivity(false)
                .with_context_activation(false)
                .with_filter(filter_fn(is_exported))
        })
    }

    /// Returns what makes OpenTelemetry's spans, for a layer of one's own over other spans.
    #[must_use]
    pub fn tracer(&self) -> SdkTracer {
        self.provider.tracer(names::TARGET)
    }

    /// Returns who sends, for a meter provider beside this exporter.
    #[must_use]
    pub fn resource(&self) -> Resource {
        self.resource.clone()
    }

    /// Returns what sends the metrics of a meter provider; none if metrics are not sent. The provider
    /// has to be shut down before this exporter.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if there can be no such client.
    pub fn metric_reader(&self) -> Result<Option<PeriodicReader<MetricExporter>>, InvalidOtlp> {
        let Some(url) = self.config.metrics_url() else {
            return Ok(None);
        };
        let headers: HeaderMap = self.config.headers.clone();
        let client = Client::new(
            self.http.clone(),
            self.runtime.clone(),
            headers,
            Body::default(),
            Arc::default(),
        );
        let exporter = MetricExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(self.config.timeout)
            .build()
            .map_err(|error| {
                let expected = "expected what an exporter can be built for";
                InvalidOtlp::new("endpoint", error.to_string(), expected)
            })?;
        let reader = PeriodicReader::builder(exporter);
        Ok(Some(
            reader.with_interval(self.config.metrics_interval).build(),
        ))
    }

    /// Shows what became of spans as [`names::metric::TELEMETRY_SPANS`].
    pub fn observe(&self, meter: &Meter) {
        let queue = self.sending.queue.clone();
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

    /// Returns what became of spans so far.
    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.sending.queue.counts()
    }

    /// Sends what still waits, for so long at most, and ends. What is left then is counted as dropped,
    /// what was on its way as failed. Spans that end later are dropped. A second time only counts.
    pub async fn shutdown(&self, within: Duration) -> SpanCounts {
        let sending = self.sending.clone();
        let ending = tokio::task::spawn_blocking(move || sending.end(within));
        // the runtime that ends while it is asked gets no better answer
        let _ = ending.await;
        self.counts()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.sending.end(self.config.flush);
    }
}

impl Sending {
    /// Waits for the thread to end by itself, and then makes it.
    fn end(&self, within: Duration) {
        let mut thread = self.thread.lock();
        let Some(thread) = thread.take() else {
            return;
        };
        self.queue.close();
        if !self.ended.within(within) {
            self.abandon.notify_one();
        }
        // it waits for nothing any more; what it panicked with was said already
        let _ = thread.join();
    }
}

impl Ended {
    fn within(&self, limit: Duration) -> bool {
        let mut ended = self.is.lock();
        self.changed
            .wait_while_for(&mut ended, |ended| !*ended, limit);
        *ended
    }
}

/// Tells that the thread has ended, however it does.
struct TellEnd(Arc<Ended>);

impl Drop for TellEnd {
    fn drop(&mut self) {
        *self.0.is.lock() = true;
        self.0.changed.notify_all();
    }
}

fn is_exported(of: &Metadata<'_>) -> bool {
    if of.is_span() {
        return of.target() == names::TARGET;
    }
    *of.level() <= Level::INFO && of.target().starts_with(names::TARGET)
}
