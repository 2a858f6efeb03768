//! Where spans and metrics are sent, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use reqwest::Url;

use super::env;

/// Where spans and metrics are sent, and how: OTLP over HTTP, as protobuf.
///
/// What is not set comes from the standard environment variables, and what they leave open has the
/// default that the [specification] gives: see [`from_env`](Self::from_env).
///
/// ```
/// use std::time::Duration;
/// use callward_telemetry::export::OtlpConfig;
///
/// let config = OtlpConfig::new("http://collector:4318")?
///     .with_service_name("orders-agent")
///     .with_header("authorization", "Bearer abc")?
///     .with_timeout(Duration::from_secs(3));
/// assert_eq!(config.traces_url(), Some("http://collector:4318/v1/traces"));
/// # Ok::<_, callward_telemetry::export::InvalidOtlp>(())
/// ```
///
/// [specification]: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
#[derive(Clone)]
pub struct OtlpConfig {
    pub(super) traces: Option<Url>,
    pub(super) metrics: Option<Url>,
    pub(super) headers: HeaderMap,
    pub(super) service_name: Option<String>,
    pub(super) resource: BTreeMap<String, String>,
    pub(super) timeout: Duration,
    pub(super) queue: usize,
    pub(super) batch: usize,
    pub(super) interval: Duration,
    pub(super) metrics_interval: Duration,
    pub(super) flush: Duration,
}

impl OtlpConfig {
    /// How many spans may wait to be sent by default.
    pub const DEFAULT_QUEUE: usize = 2048;
    /// How many spans are sent together by default.
    pub const DEFAULT_BATCH: usize = 512;
    /// How long a span waits for others by default: 5 s.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
    /// How often metrics are sent by default: 60 s.
    pub const DEFAULT_METRICS_INTERVAL: Duration = Duration::from_secs(60);
    /// How long one export may take by default, its repeats included: 10 s.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long the end waits by default for what was not sent yet: 5 s.
    pub const DEFAULT_FLUSH: Duration = Duration::from_secs(5);
    /// The largest queue: its places are made at the start.
    pub const MAX_QUEUE: usize = 1 << 20;

    /// Sends to this collector: `/v1/traces` and `/v1/metrics` are appended. All other settings have
    /// their defaults, whatever the environment says of them.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if this is no `http` or `https` URL.
    pub fn new(endpoint: &str) -> Result<Self, InvalidOtlp> {
        Self::nowhere().with_endpoint(endpoint)
    }

    /// Takes everything from the standard environment variables; `None` if they name no endpoint, or
    /// say `OTEL_SDK_DISABLED=true`.
    ///
    /// They are, each with the default where it is unset or empty:
    ///
    /// - `OTEL_EXPORTER_OTLP_ENDPOINT`, or `..._TRACES_ENDPOINT` and `..._METRICS_ENDPOINT`, which are
    ///   taken as they are;
    /// - `OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER`: `none` turns a signal off;
    /// - `OTEL_EXPORTER_OTLP_HEADERS` and `..._COMPRESSION` (`gzip` or none), and those of the signals;
    /// - `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds, 10,000);
    /// - `OTEL_EXPORTER_OTLP_PROTOCOL`: only `http/protobuf` is spoken;
    /// - `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`;
    /// - `OTEL_BSP_MAX_QUEUE_SIZE` (2048), `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` (512),
    ///   `OTEL_BSP_SCHEDULE_DELAY` (milliseconds, 5000);
    /// - `OTEL_METRIC_EXPORT_INTERVAL` (milliseconds, 60,000).
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] names the variable that holds no such value.
    pub fn from_env() -> Result<Option<Self>, InvalidOtlp> {
        env::read(|name| std::env::var(name).ok())
    }

    /// As [`from_env`](Self::from_env), for this endpoint in place of the environment's.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if this is no `http` or `https` URL, or names the variable that holds no such value.
    pub fn from_env_with(endpoint: &str) -> Result<Self, InvalidOtlp> {
        env::settings(|name| std::env::var(name).ok())?.with_endpoint(endpoint)
    }

    /// No endpoint, and the defaults.
    pub(super) fn nowhere() -> Self {
        Self {
            traces: None,
            metrics: None,
            headers: HeaderMap::new(),
            service_name: None,
            resource: BTreeMap::new(),
            timeout: Self::DEFAULT_TIMEOUT,
            queue: Self::DEFAULT_QUEUE,
            batch: Self::DEFAULT_BATCH,
            interval: Self::DEFAULT_INTERVAL,
            metrics_interval: Self::DEFAULT_METRICS_INTERVAL,
            flush: Self::DEFAULT_FLUSH,
        }
    }

    /// Sends both signals to this collector; `/v1/traces` and `/v1/metrics` are appended.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if this is no `http` or `https` URL.
    pub fn with_endpoint(self, endpoint: &str) -> Result<Self, InvalidOtlp> {
        let base = endpoint.strip_suffix('/').unwrap_or(endpoint);
        Ok(Self {
            traces: Some(parse_url("endpoint", &format!("{base}/v1/traces"))?),
            metrics: Some(parse_url("endpoint", &format!("{base}/v1/metrics"))?),
            ..self
        })
    }

    /// Sends this header with every request, such as a key for the collector. It is never shown.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if there can be no such header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidOtlp> {
        let key = HeaderName::try_from(name)
            .map_err(|_| InvalidOtlp::new("headers", name, "expected the name of a header"))?;
        let mut secret = HeaderValue::try_from(value).map_err(|_| {
            let expected = "expected a value of visible characters for this header";
            InvalidOtlp::new("headers", name, expected)
        })?;
        secret.set_sensitive(true);
        self.headers.insert(key, secret);
        Ok(self)
    }

    /// Names the service. Default: `OTEL_SERVICE_NAME`, or `unknown_service`.
    #[must_use]
    pub fn with_service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = Some(name.into());
        self
    }

    /// Adds an attribute of the service, such as `deployment.environment.name`.
    #[must_use]
    pub fn with_resource(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.resource.insert(key.into(), value.into());
        self
    }

    /// Sets how long one export may take, its repeats included. Default: 10 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many spans may wait to be sent; what comes beyond that is dropped and counted.
    /// Default: 2048. At least one, at most [`MAX_QUEUE`](Self::MAX_QUEUE).
    #[must_use]
    pub fn with_queue(mut self, spans: usize) -> Self {
        self.queue = spans;
        self
    }

    /// Sets how many spans are sent together; so many do not wait for the interval. Default: 512. More
    /// than the queue holds counts as all it holds.
    #[must_use]
    pub fn with_batch(mut self, spans: usize) -> Self {
        self.batch = spans;
        self
    }

    /// Sets how long a span waits for others at most. Default: 5 s.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets how often metrics are sent. Default: 60 s.
    #[must_use]
    pub fn with_metrics_interval(mut self, interval: Duration) -> Self {
        self.metrics_interval = interval;
        self
    }

    /// Sets how long dropping the exporter waits for what was not sent yet. Default: 5 s.
    #[must_use]
    pub fn with_flush(mut self, within: Duration) -> Self {
        self.flush = within;
        self
    }

    /// Returns where spans are sent; none if they are not.
    #[must_use]
    pub fn traces_url(&self) -> Option<&str> {
        self.traces.as_ref().map(Url::as_str)
    }

    /// Returns where metrics are sent; none if they are not.
    #[must_use]
    pub fn metrics_url(&self) -> Option<&str> {
        self.metrics.as_ref().map(Url::as_str)
    }

    /// Puts sizes and times into bounds.
    pub(super) fn bounded(mut self) -> Self {
        self.queue = self.queue.clamp(1, Self::MAX_QUEUE);
        self.batch = self.batch.clamp(1, self.queue);
        self.interval = self.interval.max(LEAST_INTERVAL);
        self.metrics_interval = self.metrics_interval.max(LEAST_INTERVAL);
        self.timeout = self.timeout.max(LEAST_INTERVAL);
        self
    }

    /// Says who sends. What is set here beats the environment.
    pub(super) fn resource(&self) -> Resource {
        let attributes = self.resource.iter();
        let attributes = attributes.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let resource = Resource::builder().with_attributes(attributes);
        match &self.service_name {
            Some(name) => resource.with_service_name(name.clone()),
            None => resource,
        }
        .build()
    }
}

/// Without the values of headers.
impl fmt::Debug for OtlpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpConfig")
            .field("traces", &self.traces_url())
            .field("metrics", &self.metrics_url())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("service_name", &self.service_name)
            .field("resource", &self.resource)
            .field("timeout", &self.timeout)
            .field("queue", &self.queue)
            .field("batch", &self.batch)
            .field("interval", &self.interval)
            .field("metrics_interval", &self.metrics_interval)
            .field("flush", &self.flush)
            .finish()
    }
}

/// Less would keep a processor busy for nothing.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// A setting of the exporter that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {expected}, found {value:?}")]
pub struct InvalidOtlp {
    setting: String,
    value: String,
    expected: String,
}

impl InvalidOtlp {
    pub(super) fn new(
        setting: &str,
        value: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            setting: setting.to_owned(),
            value: value.into(),
            expected: expected.into(),
        }
    }

    /// Returns the name of the setting: of a method without its `with_`, or an environment variable.
    #[must_use]
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// Returns what was expected and found, in words.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("{}, found {:?}", self.expected, self.value)
    }
}

/// Reads where a signal is sent.
pub(super) fn parse_url(setting: &str, text: &str) -> Result<Url, InvalidOtlp> {
    let expected = "expected the URL of a collector, such as \"http://localhost:4318\"";
    text.parse::<Url>()
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| InvalidOtlp::new(setting, text, expected))
}
