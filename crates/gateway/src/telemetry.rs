//! Derives the settings of the stack and the exporter from `[telemetry]` and the environment.
//!
//! The file overrides the environment, as the specification of OpenTelemetry says.

use callward::core::BaggageFilter;
use callward::core::redact::Redactor;
use callward::telemetry::export::{Exporter, InvalidOtlp, OtlpConfig, share_from_env};
use callward::telemetry::{Contents, Sampling};

use crate::config::Telemetry;
use crate::error::AppError;

/// Starts the exporter of spans and metrics, if the file or the environment names a collector.
///
/// # Errors
///
/// [`AppError`] if a variable of the environment is invalid.
pub(crate) fn exporter(config: &Telemetry) -> Result<Option<Exporter>, AppError> {
    Ok(otlp(config)?.map(OtlpConfig::start).transpose()?)
}

/// Returns where spans and metrics are sent, if they are.
///
/// # Errors
///
/// [`InvalidOtlp`] if a variable of the environment is invalid.
pub(crate) fn otlp(config: &Telemetry) -> Result<Option<OtlpConfig>, InvalidOtlp> {
    let Some(mut otlp) = OtlpConfig::from_env(config.otlp_endpoint.as_deref())? else {
        return Ok(None);
    };
    for (name, value) in &config.otlp_headers {
        otlp = otlp.with_header(name, value)?;
    }
    let is_named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
    let name = config.service_name.clone();
    let name = name.or_else(|| (!is_named).then(|| "callward".to_owned()));
    let version = env!("CARGO_PKG_VERSION").to_owned();
    otlp.resource.insert("service.version".to_owned(), version);
    otlp.resource
        .extend(name.map(|name| ("service.name".to_owned(), name)));
    Ok(Some(otlp))
}

/// Returns which calls are traced. All of them by default: tracing is off until a collector is
/// named, and an operator who names one wants to see the next calls.
///
/// # Errors
///
/// [`AppError`] if a variable of the environment is invalid.
pub(crate) fn sampling(config: &Telemetry) -> Result<Sampling, AppError> {
    let share = config
        .sampling
        .map_or_else(share_from_env, |share| Ok(Some(share)))?;
    let sampling = share.map_or(Ok(Sampling::always()), Sampling::ratio);
    sampling.map_err(|fault| AppError::Usage(fault.to_string()))
}

/// Returns which contents of calls spans record.
pub(crate) fn contents(config: &Telemetry) -> Contents {
    let mut contents = Contents::default();
    contents.arguments = config.record_arguments;
    contents.results = config.record_results;
    contents.redactor = Redactor::new(&config.redact, Redactor::DEFAULT_MAX_BYTES);
    contents
}

/// Returns which baggage is passed on. The keys were checked with the file.
pub(crate) fn baggage(config: &Telemetry) -> BaggageFilter {
    BaggageFilter::new(&config.baggage).unwrap_or_default()
}
