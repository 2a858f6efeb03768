//! The service.

use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tokio::time::Instant;
use tower_service::Service;

use super::{RateLimitFuture, RateLimits};

/// Lets calls pass only so often; the others wait in line, or are refused.
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    inner: S,
    limits: RateLimits,
}

impl<S> RateLimit<S> {
    /// Wraps a service.
    #[must_use]
    pub const fn new(inner: S, limits: RateLimits) -> Self {
        Self { inner, limits }
    }
}

impl<S: ToolService> Service<ToolCall> for RateLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = RateLimitFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        if self.limits.passes_at_once(&call) {
            return RateLimitFuture::passing(self.inner.call(call));
        }
        let mut dues = self.limits.dues(&call);
        if dues.take_at_once() {
            dues.spend();
            return RateLimitFuture::passing(self.inner.call(call));
        }
        // the readied service waits with the call, a clone stays
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let until = self.limits.until(&call);
        RateLimitFuture::waiting(inner, async move {
            let began = Instant::now();
            dues.take(&call, until).await?;
            if let Some(record) = call.record() {
                record.spent().add_limits(began.elapsed());
            }
            dues.spend();
            Ok(call)
        })
    }
}
