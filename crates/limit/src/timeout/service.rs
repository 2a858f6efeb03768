//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use super::bounds::Bounds;
use super::watch::ProgressWatch;
use super::{AttemptTimeoutFuture, TimeoutConfig};

/// Ends an attempt that takes longer than its tool's plan allows.
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
    config: TimeoutConfig,
}

impl<S> AttemptTimeout<S> {
    pub(crate) const fn new(inner: S, config: TimeoutConfig) -> Self {
        Self { inner, config }
    }
}

impl<S: ToolService> Service<ToolCall> for AttemptTimeout<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AttemptTimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let bounds = Bounds::of(&call, self.config.cap);
        let watch = Arc::new(ProgressWatch::before(call.progress().cloned()));
        let inner = match bounds.late() {
            Some(error) => Err(error),
            None => Ok(self.inner.call(call.with_progress(watch.clone()))),
        };
        AttemptTimeoutFuture::new(inner, bounds, watch)
    }
}
