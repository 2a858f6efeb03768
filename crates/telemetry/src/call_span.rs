//! One span per call, around all other layers.

mod observed;
mod span;

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use crate::contents::Contents;
use crate::metrics::Metrics;
use crate::sampling::{self, Sampling};
use crate::span_future::SpanFuture;
use observed::ObservedCall;

/// Puts a [`CallSpan`] around a service.
#[derive(Debug, Clone, Default)]
pub struct CallSpanLayer {
    metrics: Option<Arc<Metrics>>,
    sampling: Sampling,
    contents: Contents,
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

    /// Counts and measures each call too, whether it is traced or not. Default: no metrics.
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
            settings: Arc::new(self.clone()),
        }
    }
}

/// Makes one span per call, and measures it if it was given [`Metrics`].
///
/// A call is observed if a subscriber enables its span and the [`Sampling`] selects it, or if there
/// are metrics. An observed call gets a [`CallRecord`](callward_core::CallRecord), unless it has
/// one.
#[derive(Debug, Clone)]
pub struct CallSpan<S> {
    inner: S,
    settings: Arc<CallSpanLayer>,
}

impl CallSpanLayer {
    /// Passes the call to `send`, observed if necessary.
    fn around<F>(&self, mut call: ToolCall, send: impl FnOnce(ToolCall) -> F) -> SpanFuture<F> {
        let span = match sampling::is_enabled() {
            true => self.span(&mut call),
            // without a subscriber, the trace goes on as it came
            false => Span::none(),
        };
        if span.is_disabled() && self.metrics.is_none() {
            return SpanFuture::unobserved(send(call));
        }
        let (call, observed) = ObservedCall::begin(call, span, self);
        SpanFuture::observed(observed, || send(call))
    }

    /// Makes the span of a call. A call that is not sampled is marked, and gets none.
    fn span(&self, call: &mut ToolCall) -> Span {
        if !self.sampling.takes(call) {
            call.leave_out();
            return Span::none();
        }
        span::begin(call, &self.contents)
    }
}

impl<S: ToolService> Service<ToolCall> for CallSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = SpanFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let Self { inner, settings } = self;
        settings.around(call, |call| inner.call(call))
    }
}
