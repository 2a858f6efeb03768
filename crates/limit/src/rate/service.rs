//! The service.

use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use super::RateLimits;
use crate::LimitFuture;

/// Limits the calls per minute; the others wait in a queue, or are refused.
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    inner: S,
    limits: RateLimits,
}

impl<S> RateLimit<S> {
    pub(crate) const fn new(inner: S, limits: RateLimits) -> Self {
        Self { inner, limits }
    }
}

impl<S: ToolService> Service<ToolCall> for RateLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = LimitFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let mut limits = self.limits.of(&call);
        if limits.try_acquire() {
            return LimitFuture::running(self.inner.call(call), ());
        }
        // the ready service waits with the call, and a clone stays
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let until = self.limits.until(&call);
        LimitFuture::queued(async move {
            limits.acquire(&call, until).await?;
            inner.call(call).await
        })
    }
}
