//! Continues traces of other processes, and passes them on.
//!
//! Only this module knows how a `tracing` span becomes one of OpenTelemetry. Without the feature
//! `otel` it does nothing, and the context that a call came with is passed on unchanged.

#[cfg(feature = "otel")]
mod bridge;

use callward_core::{ToolCall, TraceContext};
use tracing::Span;

/// Makes a new span of a call continue the trace the call came with, and links to the other one.
/// Must come before the span is used.
pub(crate) fn continue_call(span: &Span, call: &ToolCall) {
    #[cfg(feature = "otel")]
    {
        let beside = call.inbound().and_then(|inbound| inbound.beside.as_ref());
        if let Some(parent) = call.trace() {
            bridge::link_to_surroundings(span);
            bridge::set_parent(span, parent);
        }
        if let Some(beside) = beside {
            bridge::link(span, beside);
        }
    }
    #[cfg(not(feature = "otel"))]
    let _ = (span, call);
}

/// Makes a new span without a parent continue the trace of its call.
pub(crate) fn continue_alone(span: &Span, call: &ToolCall) {
    #[cfg(feature = "otel")]
    if Span::current().is_disabled()
        && let Some(parent) = call.trace()
    {
        bridge::set_parent(span, parent);
    }
    #[cfg(not(feature = "otel"))]
    let _ = (span, call);
}

/// Returns the context of a span, to be passed on; `None` if the span is not exported. Afterwards
/// the kind of the span is fixed.
pub(crate) fn of(span: &Span) -> Option<TraceContext> {
    #[cfg(feature = "otel")]
    return bridge::context(span);
    #[cfg(not(feature = "otel"))]
    {
        let _ = span;
        None
    }
}
