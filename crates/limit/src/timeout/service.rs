//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use super::sink::Watch;
use super::terms::Terms;
use super::{AttemptTimeoutFuture, TimeoutConfig};

/// Ends an attempt that takes longer than its tool's plan allows. An answer that is there when the
/// time ends is passed on.
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
    config: TimeoutConfig,
}

impl<S> AttemptTimeout<S> {
    /// Wraps a service.
    #[must_use]
    pub const fn new(inner: S, config: TimeoutConfig) -> Self {
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
        let terms = Terms::of(&call, self.config.cap);
        if let Some(error) = terms.too_late() {
            return AttemptTimeoutFuture::late(error);
        }
        let watch = Arc::new(Watch::before(call.progress().cloned()));
        let call = call.with_progress(watch.clone());
        AttemptTimeoutFuture::running(self.inner.call(call), terms, watch)
    }
}
