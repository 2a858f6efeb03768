//! Continues traces of other processes, and passes them on.
//!
//! Only this module knows how a `tracing` span becomes one of OpenTelemetry. Without the feature
//! `otel` it does nothing, and the context that a call came with is passed on unchanged.

#[cfg(feature = "otel")]
mod otel;

#[cfg(feature = "otel")]
pub(crate) use otel::{continue_alone, continue_call, of};
#[cfg(not(feature = "otel"))]
pub(crate) use without::{continue_alone, continue_call, of};

#[cfg(not(feature = "otel"))]
mod without {
    use callward_core::{ToolCall, TraceContext};
    use tracing::Span;

    pub(crate) const fn continue_call(_: &Span, _: &ToolCall) {}

    pub(crate) const fn continue_alone(_: &Span, _: &ToolCall) {}

    pub(crate) const fn of(_: &Span) -> Option<TraceContext> {
        None
    }
}
