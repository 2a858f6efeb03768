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
use observed::ObservedAttempt;

/// Puts an [`AttemptSpan`] around a service.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct AttemptSpanLayer;

impl AttemptSpanLayer {
    /// Makes the layer; it has no settings.
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
/// An attempt of a call that is [not sampled](ToolCall::is_left_out) gets no span. One that is sent
/// as an MCP request becomes a span of kind `client`, and the request carries its context. An attempt
/// that is dropped is recorded as `cancelled`, delivery unknown.
#[derive(Debug, Clone)]
pub struct AttemptSpan<S> {
    inner: S,
}

impl<S: ToolService> Service<ToolCall> for AttemptSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AttemptSpanFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let is_traced = sampling::is_enabled() && !call.is_left_out();
        let span = match is_traced {
            true => span::begin(&call),
            false => Span::none(),
        };
        if span.is_disabled() && call.record().is_none() {
            return AttemptSpanFuture {
                answer: self.inner.call(call),
                observed: None,
            };
        }
        let (call, observed) = ObservedAttempt::begin(call, span);
        AttemptSpanFuture {
            answer: observed.span().in_scope(|| self.inner.call(call)),
            observed: Some(Box::new(observed)),
        }
    }
}

pin_project! {
    /// The answer of an [`AttemptSpan`].
    pub struct AttemptSpanFuture<F> {
        // dropped first, so that the attempt ends after the inner service
        #[pin]
        answer: F,
        observed: Option<Box<ObservedAttempt>>,
    }
}

impl<F> Future for AttemptSpanFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
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
