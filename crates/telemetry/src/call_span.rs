//! One span per call, around everything else.

mod idle;
mod observed;
mod span;
mod texts;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use crate::contents::Contents;
use crate::error_type::Ending;
use crate::metrics::Metrics;
use crate::sampling::{self, Sampling};
use observed::Observed;
use texts::Texts;

/// Puts a [`CallSpan`] around a service.
#[derive(Debug, Clone, Default)]
pub struct CallSpanLayer {
    metrics: Option<Arc<Metrics>>,
    sampling: Sampling,
    contents: Contents,
    texts: Arc<Texts>,
}

impl CallSpanLayer {
    /// Makes spans only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which calls are traced. Default: [`Sampling::always`].
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sets which contents of calls are written into their spans. Default: [`Contents::none`].
    #[must_use]
    pub fn with_contents(mut self, contents: Contents) -> Self {
        self.contents = contents;
        self
    }

    /// Counts and measures each call too, whether its span is enabled or not. Default: not.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }
}

impl<S> Layer<S> for CallSpanLayer {
    type Service = CallSpan<S>;

    fn layer(&self, inner: S) -> CallSpan<S> {
        CallSpan {
            inner,
            settings: self.clone(),
        }
    }
}

/// Makes one span per call, and measures it if it was given [`Metrics`].
///
/// Whether a call is observed is decided once, when it arrives: if somebody listens to spans and the
/// [`Sampling`] takes the call, or if there are metrics. Then it gets a [`CallRecord`](callward_core::CallRecord), unless it has one.
#[derive(Debug, Clone)]
pub struct CallSpan<S> {
    inner: S,
    settings: CallSpanLayer,
}

impl CallSpanLayer {
    /// Hands the call on by `send`, and observes it if anybody counts or listens.
    #[inline]
    fn around<F>(&self, call: ToolCall, send: impl FnOnce(ToolCall) -> F) -> CallSpanFuture<F> {
        if self.metrics.is_none() && !sampling::is_listened_to() {
            return CallSpanFuture::unobserved(send(call));
        }
        self.observe(call, send)
    }

    /// Observes the call that `send` hands on, unless it is left out of the trace and nobody counts.
    ///
    /// Never part of its caller, so that the way of a call that nobody observes stays short.
    #[inline(never)]
    fn observe<F>(
        &self,
        mut call: ToolCall,
        send: impl FnOnce(ToolCall) -> F,
    ) -> CallSpanFuture<F> {
        let span = match sampling::is_listened_to() {
            true => self.span(&mut call),
            // that is no decision about the trace, which goes on as it came
            false => Span::none(),
        };
        if span.is_disabled() && self.metrics.is_none() {
            return CallSpanFuture::unobserved(send(call));
        }
        let (call, observed) = Observed::begin(call, span, self.metrics.clone(), &self.contents);
        CallSpanFuture {
            // layers that work before the first poll are inside the span too
            answer: observed.in_scope(|| send(call)),
            observed: Some(observed),
        }
    }

    /// Makes the span of a call where somebody listens. A call that is left out is marked so.
    fn span(&self, call: &mut ToolCall) -> Span {
        if !self.sampling.takes(call) {
            call.leave_out();
            return Span::none();
        }
        span::begin(call, &self.contents, &self.texts)
    }
}

impl<S> CallSpan<S> {
    /// Calls as [`Service::call`] does, by whoever shares the service with others. `send` hands the call
    /// to what is inside, which must be ready.
    #[inline]
    pub fn call_ref<F>(
        &self,
        call: ToolCall,
        send: impl FnOnce(&S, ToolCall) -> F,
    ) -> CallSpanFuture<F> {
        self.settings.around(call, |call| send(&self.inner, call))
    }
}

impl<S: ToolService> Service<ToolCall> for CallSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = CallSpanFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        let Self { inner, settings } = self;
        settings.around(call, |call| inner.call(call))
    }
}

pin_project! {
    /// The answer of a [`CallSpan`].
    pub struct CallSpanFuture<F> {
        // dropped first: what its end writes into the record is still seen
        #[pin]
        answer: F,
        observed: Option<Observed>,
    }
}

impl<F> CallSpanFuture<F> {
    #[inline]
    const fn unobserved(answer: F) -> Self {
        Self {
            answer,
            observed: None,
        }
    }
}

impl<F> Future for CallSpanFuture<F>
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

impl<F> CallSpanFuture<F>
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
        let result = ready!(observed.in_scope(|| this.answer.poll(cx)));
        if let Some(observed) = this.observed.take() {
            observed.end(Ending::Done(&result));
        }
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for CallSpanFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallSpanFuture")
            .field("is_observed", &self.observed.is_some())
            .finish_non_exhaustive()
    }
}
