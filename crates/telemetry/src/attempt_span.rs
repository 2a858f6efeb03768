//! One span per attempt, directly around the router.

mod observed;
mod span;

use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use crate::sampling;
use crate::span_future::SpanFuture;
use observed::ObservedAttempt;

/// Puts an [`AttemptSpan`] around a service. It has no settings.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct AttemptSpanLayer;

impl<S> Layer<S> for AttemptSpanLayer {
    type Service = AttemptSpan<S>;

    fn layer(&self, inner: S) -> AttemptSpan<S> {
        AttemptSpan { inner }
    }
}

/// Makes one span per attempt, and writes each attempt into the call's record if it has one.
///
/// An attempt of a call that is [not sampled](callward_core::CallContext::is_left_out) gets no
/// span. One that is sent as an MCP request becomes a span of kind `client`, and the request
/// carries its context. An attempt that is dropped is recorded as `cancelled`, delivery unknown.
#[derive(Debug, Clone)]
pub struct AttemptSpan<S> {
    inner: S,
}

impl<S: ToolService> Service<ToolCall> for AttemptSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = SpanFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let is_traced = sampling::is_enabled() && !call.is_left_out;
        let span = match is_traced {
            true => span::begin(&call),
            false => Span::none(),
        };
        if span.is_disabled() && call.record.is_none() {
            return SpanFuture::unobserved(self.inner.call(call));
        }
        let (call, observed) = ObservedAttempt::begin(call, span);
        SpanFuture::observed(observed, || self.inner.call(call))
    }
}
