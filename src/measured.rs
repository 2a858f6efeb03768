//! Counts calls that run, at their tools and servers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use callward_core::{CallStats, ErrorKind, Tool, ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower::Layer;
use tower_service::Service;

/// Counts the calls that pass, with how long they took and whether they failed: those of a server
/// if there is one, and the attempts of their tools; else at the tool of each. A call that is
/// dropped does not count.
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
        let at_server = self.of_server.is_some();
        let attempt = at_server.then(|| (call.tool().clone(), call.plan().limits.attempt_timeout));
        Measured {
            started: Instant::now(),
            stats,
            attempt,
            answer: self.inner.call(call),
        }
    }
}

pin_project! {
    pub(crate) struct Measured<F> {
        started: Instant,
        stats: Option<Arc<CallStats>>,
        // its tool and timeout
        attempt: Option<(Arc<Tool>, Duration)>,
        #[pin]
        answer: F,
    }
}

impl<F: Future<Output = Result<ToolOutput, ToolError>>> Future for Measured<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.answer.poll(cx));
        let took = this.started.elapsed();
        if let Some(stats) = this.stats {
            let failed = result.as_ref().map_or(true, ToolOutput::is_error);
            stats.count(took, failed);
        }
        if let Some((tool, timeout)) = this.attempt {
            // a failure says nothing about how long calls take, but a timeout does
            let is_timeout = |error: &ToolError| error.kind == ErrorKind::Timeout;
            let timed_out = result.as_ref().is_err_and(is_timeout) && took >= *timeout;
            if result.is_ok() || timed_out {
                tool.count_attempt(took, timed_out);
            }
        }
        Poll::Ready(result)
    }
}
