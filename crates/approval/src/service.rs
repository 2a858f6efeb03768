//! The service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::future::{ApprovalFuture, ask};
use crate::layer::Shared;

/// Runs a call that needs approval only with one, and once.
#[derive(Clone)]
pub struct Approval<S> {
    pub(crate) inner: S,
    pub(crate) shared: Option<Arc<Shared>>,
}

impl<S: fmt::Debug> fmt::Debug for Approval<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S: ToolService> Service<ToolCall> for Approval<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = ApprovalFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let shared = self.shared.as_ref();
        match shared.and_then(|shared| Some((shared, shared.asks(&call)?))) {
            None => ApprovalFuture::pass(self.inner.call(call)),
            Some((shared, reason)) => {
                // what was made ready goes: a call that waits for a person holds no permit
                let inner = self.inner.clone();
                self.inner = inner.clone();
                ApprovalFuture::ask(Box::pin(ask(shared.clone(), inner, call, reason)))
            }
        }
    }
}
