//! The service: `tower::retry` under our own name.

use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::{RetryFuture, RetryPolicy};

/// Retries a failed call of the inner service when that is certainly safe.
#[derive(Debug, Clone)]
pub struct Retry<S> {
    inner: tower::retry::Retry<RetryPolicy, S>,
    /// The same one that `inner` holds, which does not show it.
    policy: RetryPolicy,
}

impl<S> Retry<S> {
    /// Wraps a service. Services that are given clones of one policy share its budgets.
    #[must_use]
    pub fn new(inner: S, policy: RetryPolicy) -> Self {
        Self {
            inner: tower::retry::Retry::new(policy.clone(), inner),
            policy,
        }
    }
}

impl<S: ToolService> Service<ToolCall> for Retry<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = RetryFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> RetryFuture<S> {
        // before the first attempt, so that all of them are one call to the server
        call.ensure_idempotency_key();
        self.policy.share_out(&mut call);
        RetryFuture::new(self.inner.call(call))
    }
}
