//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_service::Service;

use super::future::{Output, hedged};
use super::layer::Shared;

/// Sends a slow read a second time, to another server, and takes the first answer.
#[derive(Debug, Clone)]
pub struct Hedge<S> {
    inner: S,
    shared: Option<Arc<Shared>>,
}

impl<S> Hedge<S> {
    pub(super) const fn new(inner: S, shared: Option<Arc<Shared>>) -> Self {
        Self { inner, shared }
    }
}

impl<S: ToolService> Service<ToolCall> for Hedge<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<S::Future, BoxFuture<'static, Output>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let shared = self.shared.as_ref().filter(|_| may_hedge(&call));
        let Some(shared) = shared.cloned() else {
            return Either::Left(self.inner.call(call));
        };
        let hedge = call.clone();
        let server = call.attempt_mut().chosen.get_or_insert_default().clone();
        let first = self.inner.call(call);
        // the clone gets ready when the hedge is due
        let inner = self.inner.clone();
        Either::Right(Box::pin(hedged(shared, first, server, inner, hedge)))
    }
}

/// Returns `true` if a second attempt of the call may run beside the first.
fn may_hedge(call: &ToolCall) -> bool {
    let plan = call.plan();
    !plan.is_write()
        && plan.is_retryable()
        && !call.purpose().is_background()
        && !call.attempt().elsewhere_only
}
