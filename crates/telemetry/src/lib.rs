//! Spans and metrics of calls and attempts, under OpenTelemetry [`names`].
//!
//! **Rule.** [`CallSpan`] makes one `tracing` span per call, not one per layer, and counts it with
//! [`Metrics`]; [`AttemptSpan`] makes one per attempt, [`DiscoverySpan`] one per listing. Layers
//! write the outcome into the [`CallRecord`](callward_core::CallRecord), and the span copies it at
//! the end. A dropped call ends with the error type `cancelled`. Errors and readiness are the inner
//! service's.
//!
//! **Traces.** [`Sampling`] decides before a span is built. With the feature `otel`, a span
//! continues the trace of its call, and servers continue that of the attempt. The layer of
//! `tracing-opentelemetry` needs `with_context_activation(false)`.
//!
//! ```
//! use callward_telemetry::{AttemptSpanLayer, CallSpanLayer};
//! # use callward_testkit::{MockService, call, tool};
//! # use tower::{Layer, ServiceExt};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let attempts = AttemptSpanLayer::default().layer(MockService::counting());
//! let calls = CallSpanLayer::default().layer(attempts);
//! # let tool = tool("read_order").read_only().build();
//! calls.oneshot(call(&tool, serde_json::json!({"id": 7}))).await?;
//! # Ok(())
//! # }
//! ```

mod attempt_span;
mod call_span;
mod client_request;
mod contents;
mod context;
mod discovery;
mod error_type;
#[cfg(feature = "otlp")]
pub mod export;
pub mod metrics;
pub mod names;
mod sampling;
mod span_future;

pub use attempt_span::{AttemptSpan, AttemptSpanLayer};
pub use call_span::{CallSpan, CallSpanLayer};
pub use contents::Contents;
pub use discovery::DiscoverySpan;
pub use metrics::Metrics;
pub use sampling::Sampling;
pub use span_future::SpanFuture;
