//! `[telemetry]`: what is told of calls, and to whom.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use callward::core::redact::Redactor;
use serde::Deserialize;

use super::units::{Size, some_duration};

/// `[telemetry]`. What has no value here is said by the environment, or has the default of the
/// exporter.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) otlp_headers: BTreeMap<String, String>,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) otlp_timeout: Option<Duration>,
    pub(crate) otlp_queue: Option<usize>,
    pub(crate) otlp_batch: Option<usize>,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) otlp_interval: Option<Duration>,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) otlp_metrics_interval: Option<Duration>,
    pub(crate) sampling: Option<f64>,
    pub(crate) service_name: Option<String>,
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) baggage: Vec<String>,
    pub(crate) record_arguments: bool,
    pub(crate) record_results: bool,
    pub(crate) redact: Vec<String>,
    pub(crate) max_recorded_bytes: Size,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            otlp_headers: BTreeMap::new(),
            otlp_timeout: None,
            otlp_queue: None,
            otlp_batch: None,
            otlp_interval: None,
            otlp_metrics_interval: None,
            sampling: None,
            service_name: None,
            resource: BTreeMap::new(),
            baggage: Vec::new(),
            record_arguments: false,
            record_results: false,
            redact: Redactor::DEFAULT_NAMES.map(Into::into).into(),
            max_recorded_bytes: Size(Redactor::DEFAULT_MAX_BYTES as u64),
        }
    }
}

/// Without the values of headers: they are keys.
impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // taken apart, so that no key is left out
        let Self {
            otlp_endpoint,
            otlp_headers,
            otlp_timeout,
            otlp_queue,
            otlp_batch,
            otlp_interval,
            otlp_metrics_interval,
            sampling,
            service_name,
            resource,
            baggage,
            record_arguments,
            record_results,
            redact,
            max_recorded_bytes,
        } = self;
        f.debug_struct("Telemetry")
            .field("otlp_endpoint", otlp_endpoint)
            .field("otlp_headers", &otlp_headers.keys().collect::<Vec<_>>())
            .field("otlp_timeout", otlp_timeout)
            .field("otlp_queue", otlp_queue)
            .field("otlp_batch", otlp_batch)
            .field("otlp_interval", otlp_interval)
            .field("otlp_metrics_interval", otlp_metrics_interval)
            .field("sampling", sampling)
            .field("service_name", service_name)
            .field("resource", resource)
            .field("baggage", baggage)
            .field("record_arguments", record_arguments)
            .field("record_results", record_results)
            .field("redact", redact)
            .field("max_recorded_bytes", max_recorded_bytes)
            .finish()
    }
}
