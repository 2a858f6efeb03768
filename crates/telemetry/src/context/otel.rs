//! Continues and passes on traces through `tracing-opentelemetry`.

use callward_core::{ToolCall, TraceContext};
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes a new span of a call continue the trace the call came with, and links to the other one.
/// Must come before the span is used.
pub(crate) fn continue_call(span: &Span, call: &ToolCall) {
    if let Some(parent) = &call.trace {
        // the surrounding span cannot be a parent as well
        let around = Span::current();
        if !around.is_disabled() {
            // the context of a span that is not exported is invalid, and not linked
            span.add_link(around.context().span().span_context().clone());
        }
        set_parent(span, parent);
    }
    let inbound = call.inbound.as_ref();
    if let Some(beside) = inbound.and_then(|inbound| inbound.beside.as_ref()) {
        span.add_link(remote(beside));
    }
}

/// Makes a new span without a parent continue the trace of its call.
pub(crate) fn continue_alone(span: &Span, call: &ToolCall) {
    if Span::current().is_disabled()
        && let Some(parent) = &call.trace
    {
        set_parent(span, parent);
    }
}

/// Returns the context of a span, to be passed on; `None` if the span is not exported. Afterwards
/// the kind of the span is fixed.
pub(crate) fn of(span: &Span) -> Option<TraceContext> {
    let context = span.context();
    let span = context.span();
    let own = span.span_context();
    let trace_id = u128::from_be_bytes(own.trace_id().to_bytes());
    let span_id = u64::from_be_bytes(own.span_id().to_bytes());
    let found = TraceContext::new(trace_id, span_id, own.trace_flags().to_u8())?;
    let state = own.trace_state().header();
    Some(found.with_state((!state.is_empty()).then_some(state.as_str())))
}

fn set_parent(span: &Span, parent: &TraceContext) {
    let parent = Context::new().with_remote_span_context(remote(parent));
    // fails without an exporter, and then no trace can be continued
    let _ = span.set_parent(parent);
}

fn remote(context: &TraceContext) -> SpanContext {
    // checked when it was read; a state that OpenTelemetry refuses is dropped
    let state = context.state().and_then(|state| state.parse().ok());
    SpanContext::new(
        TraceId::from_bytes(context.trace_id().to_be_bytes()),
        SpanId::from_bytes(context.parent_id().to_be_bytes()),
        TraceFlags::new(context.flags()),
        true,
        state.unwrap_or(TraceState::NONE),
    )
}
