//! Spans and metrics, as a subscriber, an exporter and a collector see them.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod attempt;
mod call_span;
mod capture;
mod contents;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otel")]
mod exported;
mod fields;
mod measured;
mod sampled;
