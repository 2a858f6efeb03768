//! Converts to and from OpenTelemetry's types.

use callward_core::TraceContext;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

pub(super) fn set_parent(span: &Span, parent: &TraceContext) {
    let parent = Context::new().with_remote_span_context(remote(parent));
    // fails without an exporter, and then there is nothing to continue
    let _ = span.set_parent(parent);
}

pub(super) fn link(span: &Span, other: &TraceContext) {
    span.add_link(remote(other));
}

/// Links to the span that the call is made in, which cannot be the parent as well.
pub(super) fn link_to_surroundings(span: &Span) {
    let around = Span::current();
    if !around.is_disabled() {
        // the context of a span that is not exported is invalid, and not linked
        span.add_link(around.context().span().span_context().clone());
    }
}

pub(super) fn context(span: &Span) -> Option<TraceContext> {
    let context = span.context();
    let span = context.span();
    let own = span.span_context();
    let trace_id = u128::from_be_bytes(own.trace_id().to_bytes());
    let span_id = u64::from_be_bytes(own.span_id().to_bytes());
    let found = TraceContext::new(trace_id, span_id, own.is_sampled())?;
    let found = found.with_flags(own.trace_flags().to_u8());
    let state = own.trace_state().header();
    Some(found.with_state((!state.is_empty()).then_some(state.as_str())))
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
