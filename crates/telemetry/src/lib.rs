//! Spans and metrics of calls and attempts, under OpenTelemetry names.
//!
//! [`CallSpan`] makes one `tracing` span per call and, if it is given [`Metrics`], counts and
//! measures it. [`AttemptSpan`] makes one span per attempt. Every name is in [`names`].
//!
//! **Rule.** What a call was (tool, effect, plan) is known when its span begins; what became of it
//! is written by the layers into the call's [`CallRecord`](tollgate_core::CallRecord) and copied
//! into the span when it ends. So there is one span per call, not one per layer. A call that
//! somebody observes gets a record, unless it has one; a call that nobody observes gets nothing:
//! no record, no look at the clock. Arguments and results are never recorded.
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
//! [`ErrorKind`](tollgate_core::ErrorKind).
//!
//! **Order.** [`CallSpan`] stands outside of everything, so that it sees the caller's latency, and
//! hits and refusals too. [`AttemptSpan`] stands inside of retry and directly outside of the
//! router. The other way round the time of an attempt would hold the pauses between attempts.
//!
//! ```
//! use tollgate_telemetry::{AttemptSpanLayer, CallSpanLayer};
//! # use tollgate_testkit::{MockService, call, tool};
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
mod error_type;
#[cfg(feature = "otlp")]
pub mod export;
mod metrics;
pub mod names;

pub use attempt_span::{AttemptSpan, AttemptSpanFuture, AttemptSpanLayer};
pub use call_span::{CallSpan, CallSpanFuture, CallSpanLayer};
pub use metrics::Metrics;
