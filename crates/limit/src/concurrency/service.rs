//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;

use super::permits::{Held, Permits};
use super::{ConcurrencyHandle, ConcurrencyLimitLayer};
use crate::permitted::Permitted;

/// Limits how many calls are in flight at a server; the others wait in a queue.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit<S> {
    inner: S,
    permits: Arc<Permits>,
}

impl<S> ConcurrencyLimit<S> {
    /// Returns a handle that reads the limit.
    #[must_use]
    pub fn handle(&self) -> ConcurrencyHandle {
        ConcurrencyHandle(self.permits.clone())
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Service = ConcurrencyLimit<S>;

    fn layer(&self, inner: S) -> ConcurrencyLimit<S> {
        let permits = Arc::new(Permits::new(self.clone()));
        ConcurrencyLimit { inner, permits }
    }
}

impl<S: ToolService> Service<ToolCall> for ConcurrencyLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future =
        Either<Permitted<S::Future, Held>, BoxFuture<'static, Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let tool = match self.permits.try_acquire(call.tool().name()) {
            Ok(held) => {
                return Either::Left(Permitted::new(self.inner.call(call), Some(held)));
            }
            Err(tool) => tool,
        };
        // the ready service goes with the call, and a clone stays
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let permits = self.permits.clone();
        Either::Right(Box::pin(async move {
            let _held = permits.acquire(&call, tool).await?;
            inner.call(call).await
        }))
    }
}
