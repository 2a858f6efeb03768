//! Spans and metrics of calls and attempts, under OpenTelemetry names.
//!
//! [`CallSpan`] makes one `tracing` span per call and, if it is given [`Metrics`], counts and
//! measures it. [`AttemptSpan`] makes one span per attempt, and [`DiscoverySpan`] one per listing of
//! a server's tools. Every name is in [`names`].
//!
//! **Rule.** What a call was (tool, effect, plan) is known when its span begins; what became of it
//! is written by the layers into the call's [`CallRecord`](callward_core::CallRecord) and copied
//! into the span when it ends. So there is one span per call, not one per layer. A call that
//! somebody observes gets a record, unless it has one; a call that nobody observes gets nothing:
//! no record, no look at the clock. Arguments and results are recorded only where [`Contents`] says
//! so, without secrets.
//!
//! **Traces.** Which calls are traced is decided before a span is built ([`Sampling`]): a call that is
//! left out allocates nothing here, and its servers are told to leave it out too. With the feature
//! `otel`, a span continues the trace that its call came with
//! ([`TraceContext`](callward_core::TraceContext)), and servers continue that of the attempt: for
//! whoever exports spans through the crate `tracing-opentelemetry`. Its layer has to be set up with
//! `with_context_activation(false)`: that an attempt is a client's is known only once there is a
//! request. Without the feature, the context goes through as it came.
//!
//! **Readiness** is that of the inner service.
//!
//! **Cancellation.** A call or attempt that is dropped before its end is recorded with the error
//! type `cancelled`. The span is entered for each poll and left after it, so it never leaks into
//! another task.
//!
//! **Clone.** Clones share the metrics, nothing else.
//!
//! **Errors.** None are added; results pass as they are. `error.type` is `tool_error` for an answer
//! with `isError`, the code for a JSON-RPC or HTTP code, and else the word of the
//! [`ErrorKind`](callward_core::ErrorKind).
//!
//! **Order.** [`CallSpan`] stands outside of everything, so that it sees the caller's latency, and
//! hits and refusals too. [`AttemptSpan`] stands inside of retry and directly outside of the
//! router. The other way round the time of an attempt would hold the pauses between attempts.
//!
//! ```
//! use callward_telemetry::{AttemptSpanLayer, CallSpanLayer};
//! # use callward_testkit::{MockService, call, tool};
//! # use tower::{Layer, ServiceExt};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = MockService::counting();
//! let attempts = AttemptSpanLayer::new().layer(server);
//! let calls = CallSpanLayer::new().layer(attempts);
//! # let tool = tool("read_order").read_only().build();
//! calls.oneshot(call(&tool, serde_json::json!({"id": 7}))).await?;
//! # Ok(())
//! # }
//! ```

mod attempt_span;
mod call_span;
mod contents;
mod context;
mod discovery;
mod error_type;
#[cfg(feature = "otlp")]
pub mod export;
pub mod metrics;
pub mod names;
mod outward;
mod sampling;
mod status;

pub use attempt_span::{AttemptSpan, AttemptSpanFuture, AttemptSpanLayer};
pub use call_span::{CallSpan, CallSpanFuture, CallSpanLayer};
pub use contents::Contents;
pub use discovery::{DiscoveryPurpose, DiscoverySpan};
pub use metrics::Metrics;
pub use sampling::Sampling;
