//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::future::{ApprovalFuture, ask};
use crate::layer::Shared;

/// Runs a call that needs approval only with one, and once.
#[derive(Debug, Clone)]
pub struct Approval<S> {
    pub(crate) inner: S,
    pub(crate) shared: Option<Arc<Shared>>,
}

impl<S: ToolService> Service<ToolCall> for Approval<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = ApprovalFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let asks = self
            .shared
            .as_ref()
            .and_then(|shared| Some((shared, shared.asks(&call)?)));
        let Some((shared, why)) = asks else {
            return ApprovalFuture::Left(self.inner.call(call));
        };
        // what was made ready goes: a call that waits for a person holds no permit
        let inner = self.inner.clone();
        self.inner = inner.clone();
        ApprovalFuture::Right(Box::pin(ask(shared.clone(), inner, call, why)))
    }
}
