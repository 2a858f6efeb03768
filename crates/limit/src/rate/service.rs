//! The service.

use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_service::Service;

use super::RateLimitLayer;

/// Limits the calls per minute; the others wait in a queue, or are refused.
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    inner: S,
    limits: RateLimitLayer,
}

impl<S> RateLimit<S> {
    pub(crate) const fn new(inner: S, limits: RateLimitLayer) -> Self {
        Self { inner, limits }
    }
}

impl<S: ToolService> Service<ToolCall> for RateLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<S::Future, BoxFuture<'static, Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let mut limits = self.limits.of(&call);
        if limits.try_acquire() {
            return Either::Left(self.inner.call(call));
        }
        // the ready service waits with the call, and a clone stays
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let until = self.limits.until(&call);
        Either::Right(Box::pin(async move {
            limits.acquire(&call, until).await?;
            inner.call(call).await
        }))
    }
}
