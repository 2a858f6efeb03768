//! Metrics: taken through OpenTelemetry, shown as Prometheus text.

use std::sync::Arc;

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use tollgate::Stack;
use tollgate::core::PeerObserver;
use tollgate::telemetry::metrics::{Metrics, observe_gauge};
use tollgate::telemetry::names::metric::CALLS_IN_FLIGHT;

use crate::error::AppError;
use crate::inflight::Inflight;

/// Where metrics come together.
pub(crate) struct Telemetry {
    registry: Registry,
    /// Held for its drop: instruments end with it.
    _provider: SdkMeterProvider,
    meter: Meter,
    metrics: Arc<Metrics>,
}

impl Telemetry {
    /// Starts without any value.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the exporter cannot be registered.
    pub(crate) fn new() -> Result<Self, AppError> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| AppError::Usage(format!("metrics cannot be exported: {error}")))?;
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        let meter = provider.meter("tollgate");
        let metrics = Arc::new(Metrics::new(&meter));
        Ok(Self {
            registry,
            _provider: provider,
            meter,
            metrics,
        })
    }

    /// Returns what the stack writes into.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns who is told of requests and sessions of MCP.
    pub(crate) fn observer(&self) -> Arc<dyn PeerObserver> {
        Arc::clone(&self.metrics) as Arc<dyn PeerObserver>
    }

    /// Adds what the layers count, read off the stack when somebody asks.
    pub(crate) fn observe(&self, stack: &Stack) {
        stack.observe(&self.meter);
    }

    /// Adds the calls that are in flight.
    pub(crate) fn observe_calls(&self, calls: &Inflight) {
        let calls = calls.clone();
        observe_gauge(&self.meter, CALLS_IN_FLIGHT, move |series| {
            series.add(calls.count() as f64, []);
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
