//! Counts calls that run, at their tools and servers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use callward_core::{CallStats, ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower::Layer;
use tower_service::Service;

/// Counts the calls that pass, with how long they took and whether they failed: those of a server
/// if there is one, else at the tool of each. A call that is dropped does not count.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeasureLayer(pub(crate) Option<Arc<CallStats>>);

#[derive(Debug, Clone)]
pub(crate) struct Measure<S> {
    inner: S,
    of_server: Option<Arc<CallStats>>,
}

impl<S> Layer<S> for MeasureLayer {
    type Service = Measure<S>;

    fn layer(&self, inner: S) -> Measure<S> {
        let of_server = self.0.clone();
        Measure { inner, of_server }
    }
}

impl<S: ToolService> Service<ToolCall> for Measure<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Measured<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        // no caller waits for a call in the background
        let of_tool = || call.tool().stats.clone().filter(|_| !call.is_background);
        let stats = self.of_server.clone().or_else(of_tool);
        Measured {
            started: Instant::now(),
            stats,
            answer: self.inner.call(call),
        }
    }
}

pin_project! {
    pub(crate) struct Measured<F> {
        started: Instant,
        stats: Option<Arc<CallStats>>,
        #[pin]
        answer: F,
    }
}

impl<F: Future<Output = Result<ToolOutput, ToolError>>> Future for Measured<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.answer.poll(cx));
        if let Some(stats) = this.stats {
            let failed = result.as_ref().map_or(true, ToolOutput::is_error);
            stats.count(this.started.elapsed(), failed);
        }
        Poll::Ready(result)
    }
}
