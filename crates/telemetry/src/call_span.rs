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

pub(crate) use observed::ObservedCall;

/// Puts a [`CallSpan`] around a service. Default: makes spans only.
#[derive(Debug, Clone, Default)]
pub struct CallSpanLayer {
    metrics: Option<Arc<Metrics>>,
    sampling: Sampling,
    contents: Contents,
}

impl CallSpanLayer {
    /// Sets which calls are traced. Default: [`Sampling::always`].
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sets which contents of calls are written into their spans. Default: none.
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

impl<S: ToolService> Service<ToolCall> for CallSpan<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = SpanFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let Self { inner, settings } = self;
        let mut span = Span::none();
        // without a subscriber, the trace goes on as it came
        if sampling::is_enabled() {
            match settings.sampling.takes(&call) {
                true => span = span::begin(&call, &settings.contents),
                false => call.context_mut().is_left_out = true,
            }
        }
        if span.is_disabled() && settings.metrics.is_none() {
            return SpanFuture::unobserved(inner.call(call));
        }
        let (call, observed) = ObservedCall::begin(call, span, settings);
        SpanFuture::observed(observed, || inner.call(call))
    }
}
