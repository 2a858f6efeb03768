//! One span per attempt, directly around the router.

mod observed;
mod span;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use crate::error_type::Ending;
use crate::sampling;
use observed::Observed;

/// Puts an [`AttemptSpan`] around a service.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct AttemptSpanLayer;

impl AttemptSpanLayer {
    /// Has nothing to set.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for AttemptSpanLayer {
    type Service = AttemptSpan<S>;

    fn layer(&self, inner: S) -> AttemptSpan<S> {
        AttemptSpan { inner }
    }
}

/// Makes one span per attempt, and writes each attempt into the call's record if it has one.
///
/// The server comes from the error if it names one, and else from where the router wrote it: the
/// attempt's own place ([`ChosenServer`](callward_core::ChosenServer)) if it has one, or the record.
/// How the router decided comes from the record; an attempt with a span gets one if its call has none.
/// An attempt of a call that is [left out](ToolCall::is_left_out) of the trace gets no span. One that
/// goes out as an MCP request becomes a span of kind `client`, and its context goes along.
/// An attempt that is dropped is recorded as `cancelled`, delivery unknown.
#[derive(Debug, Clone)]
pub struct AttemptSpan<S> {
    inner: S,
}

impl<S: ToolService> Service<ToolCall> for AttemptSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AttemptSpanFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        if call.record().is_none() && (!sampling::is_listened_to() || call.is_left_out()) {
            return AttemptSpanFuture::unobserved(self.inner.call(call));
        }
        self.observe(call)
    }
}

impl<S: ToolService> AttemptSpan<S> {
    /// Hands an attempt on, and observes it unless its span is disabled after all and nobody counts.
    // never part of its caller, so that the way of an attempt that nobody observes stays short
    #[inline(never)]
    fn observe(&mut self, call: ToolCall) -> AttemptSpanFuture<S::Future> {
        let span = match call.is_left_out() {
            true => Span::none(),
            false => span::begin(&call),
        };
        if span.is_disabled() && call.record().is_none() {
            return AttemptSpanFuture::unobserved(self.inner.call(call));
        }
        let (call, observed) = Observed::begin(call, span);
        AttemptSpanFuture {
            answer: observed.span().in_scope(|| self.inner.call(call)),
            observed: Some(Box::new(observed)),
        }
    }
}

pin_project! {
    /// The answer of an [`AttemptSpan`].
    pub struct AttemptSpanFuture<F> {
        // dropped first, so that the attempt ends after what is inside of it
        #[pin]
        answer: F,
        // a pointer: the future of each attempt has room for one, and is moved with it
        observed: Option<Box<Observed>>,
    }
}

impl<F> AttemptSpanFuture<F> {
    #[inline]
    const fn unobserved(answer: F) -> Self {
        Self {
            answer,
            observed: None,
        }
    }
}

impl<F> Future for AttemptSpanFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.observed.is_none() {
            return self.project().answer.poll(cx);
        }
        self.poll_observed(cx)
    }
}

impl<F> AttemptSpanFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    // never part of its caller, as above
    #[inline(never)]
    fn poll_observed(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(observed) = this.observed else {
            return this.answer.poll(cx);
        };
        let result = ready!(observed.span().in_scope(|| this.answer.poll(cx)));
        if let Some(observed) = this.observed.take() {
            observed.end(Ending::Done(&result));
        }
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for AttemptSpanFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptSpanFuture")
            .field("is_observed", &self.observed.is_some())
            .finish_non_exhaustive()
    }
}
