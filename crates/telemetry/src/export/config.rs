//! Where spans and metrics are sent, and how.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use reqwest::Url;

use super::env;

/// Where spans and metrics are sent, and how: OTLP over HTTP, as protobuf.
///
/// [`new`](Self::new) starts from the defaults of the [specification], and
/// [`from_env`](Self::from_env) from the standard environment variables.
///
/// ```
/// use std::time::Duration;
/// use callward_telemetry::export::OtlpConfig;
///
/// let mut config = OtlpConfig::new("http://collector:4318")?
///     .with_header("authorization", "Bearer abc")?;
/// config.resource.insert("service.name".to_owned(), "orders-agent".to_owned());
/// config.timeout = Duration::from_secs(3);
/// assert_eq!(config.traces_url(), Some("http://collector:4318/v1/traces"));
/// # Ok::<_, callward_telemetry::export::InvalidOtlp>(())
/// ```
///
/// [specification]: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
#[derive(Debug, Clone)]
pub struct OtlpConfig {
    pub(super) traces: Option<Url>,
    pub(super) metrics: Option<Url>,
    pub(super) headers: HeaderMap,
    /// Attributes of the service, such as `service.name` and `deployment.environment.name`. They
    /// override `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
    pub resource: BTreeMap<String, String>,
    /// How long one request may take, and for how long it is retried. Default: 10 s.
    pub timeout: Duration,
    /// How many spans may wait, those in flight included; further ones are dropped and counted. At
    /// least one, at most [`MAX_QUEUE`](Self::MAX_QUEUE). Default: 2048.
    pub queue: usize,
    /// How many spans are sent together; a full batch does not wait for the interval. At most the
    /// size of the queue. Default: 512.
    pub batch: usize,
    /// How long a span waits at most for a full batch. Default: 5 s.
    pub interval: Duration,
    /// How often metrics are sent. Default: 60 s.
    pub metrics_interval: Duration,
}

impl OtlpConfig {
    /// The largest queue: the SDK allocates it at the start.
    pub const MAX_QUEUE: usize = 1 << 20;

    /// Sends both signals to this collector; `/v1/traces` and `/v1/metrics` are appended. Other
    /// settings have their defaults; sizes and times are not read from the environment.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if this is not an `http` or `https` URL.
    pub fn new(endpoint: &str) -> Result<Self, InvalidOtlp> {
        Self::nowhere().with_base("endpoint", endpoint)
    }

    /// Reads the standard environment variables, with this endpoint if there is one. Without it,
    /// `None` if the variables name no endpoint, or `OTEL_SDK_DISABLED` is `true`.
    ///
    /// Each has the default where it is unset or empty:
    ///
    /// - `OTEL_EXPORTER_OTLP_ENDPOINT`, or `..._TRACES_ENDPOINT` and `..._METRICS_ENDPOINT`, which
    ///   are used unchanged;
    /// - `OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER`: `none` turns a signal off;
    /// - `OTEL_EXPORTER_OTLP_HEADERS` and `..._COMPRESSION` (`gzip` or none), and those of the
    ///   signals;
    /// - `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds, 10,000);
    /// - `OTEL_EXPORTER_OTLP_PROTOCOL`: only `http/protobuf` is supported;
    /// - `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`;
    /// - `OTEL_BSP_MAX_QUEUE_SIZE` (2048), `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` (512),
    ///   `OTEL_BSP_SCHEDULE_DELAY` (milliseconds, 5000);
    /// - `OTEL_METRIC_EXPORT_INTERVAL` (milliseconds, 60,000).
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] names the variable with an invalid value, or says that the endpoint is not
    /// an `http` or `https` URL.
    pub fn from_env(endpoint: Option<&str>) -> Result<Option<Self>, InvalidOtlp> {
        env::read(endpoint, |name| std::env::var(name).ok())
    }

    /// No endpoint, and the defaults of the specification.
    pub(super) fn nowhere() -> Self {
        Self {
            traces: None,
            metrics: None,
            headers: HeaderMap::new(),
            resource: BTreeMap::new(),
            timeout: Duration::from_secs(10),
            queue: 2048,
            batch: 512,
            interval: Duration::from_secs(5),
            metrics_interval: Duration::from_secs(60),
        }
    }

    /// Sends both signals to this collector; `/v1/traces` and `/v1/metrics` are appended.
    pub(super) fn with_base(self, setting: &str, endpoint: &str) -> Result<Self, InvalidOtlp> {
        parse_url(setting, endpoint)?;
        let base = endpoint.strip_suffix('/').unwrap_or(endpoint);
        Ok(Self {
            traces: Some(parse_url(setting, &format!("{base}/v1/traces"))?),
            metrics: Some(parse_url(setting, &format!("{base}/v1/metrics"))?),
            ..self
        })
    }

    /// Sends this header with every request, such as a key for the collector. Its value is never
    /// shown.
    ///
    /// # Errors
    ///
    /// [`InvalidOtlp`] if the name or value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidOtlp> {
        let key = HeaderName::try_from(name)
            .map_err(|_| InvalidOtlp::new("headers", name, "expected the name of a header"))?;
        let mut secret = HeaderValue::try_from(value).map_err(|_| {
            let expected = "expected visible characters as the value of this header";
            InvalidOtlp::new("headers", name, expected)
        })?;
        secret.set_sensitive(true);
        self.headers.insert(key, secret);
        Ok(self)
    }

    /// Returns the URL that spans are sent to; `None` if they are not sent.
    #[must_use]
    pub fn traces_url(&self) -> Option<&str> {
        self.traces.as_ref().map(Url::as_str)
    }

    /// Returns the URL that metrics are sent to; `None` if they are not sent.
    #[must_use]
    pub fn metrics_url(&self) -> Option<&str> {
        self.metrics.as_ref().map(Url::as_str)
    }

    /// Clamps sizes and times.
    pub(super) fn bounded(mut self) -> Self {
        self.queue = self.queue.clamp(1, Self::MAX_QUEUE);
        self.batch = self.batch.clamp(1, self.queue);
        self.interval = self.interval.max(MIN_INTERVAL);
        self.metrics_interval = self.metrics_interval.max(MIN_INTERVAL);
        self.timeout = self.timeout.max(MIN_INTERVAL);
        self
    }

    /// Returns the attributes of the service. What is set here beats the environment.
    pub(super) fn resource(&self) -> Resource {
        let attributes = self.resource.iter();
        let attributes = attributes.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        Resource::builder().with_attributes(attributes).build()
    }
}

/// A shorter interval would keep a processor busy without effect.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// An invalid setting of the exporter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
#[non_exhaustive]
pub struct InvalidOtlp {
    /// The setting, or the variable of the environment.
    pub setting: String,
    /// What was expected, and what was found.
    pub reason: String,
}

impl InvalidOtlp {
    pub(super) fn new(setting: &str, value: &str, expected: &str) -> Self {
        Self {
            setting: setting.to_owned(),
            reason: format!("{expected}, found {value:?}"),
        }
    }
}

/// Reads the URL of a collector.
pub(super) fn parse_url(setting: &str, text: &str) -> Result<Url, InvalidOtlp> {
    let expected = "expected the URL of a collector, such as \"http://localhost:4318\"";
    text.parse::<Url>()
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| InvalidOtlp::new(setting, text, expected))
}
