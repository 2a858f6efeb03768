//! The layer and its service.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;

use super::bounds::Bounds;
use super::watch::ProgressWatch;
use super::{AttemptTimeoutFuture, Cap};

/// Puts an [`AttemptTimeout`] around a service.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptTimeoutLayer {
    cap: Cap,
}

impl AttemptTimeoutLayer {
    /// Makes a layer with the default cap: progress stretches an attempt up to ten times.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how far progress stretches an attempt. A cap below the timeout counts as the timeout.
    #[must_use]
    pub const fn with_cap(mut self, cap: Cap) -> Self {
        self.cap = cap;
        self
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        let cap = self.cap;
        AttemptTimeout { inner, cap }
    }
}

/// Ends an attempt that takes longer than its tool's plan allows.
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
    cap: Cap,
}

impl<S: ToolService> Service<ToolCall> for AttemptTimeout<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<AttemptTimeoutFuture<S::Future>, Ready<Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let bounds = Bounds::of(&call, self.cap);
        if let Some(error) = bounds.late() {
            return Either::Right(ready(Err(error)));
        }
        let watch = Arc::new(ProgressWatch::before(call.progress().cloned()));
        let inner = self.inner.call(call.with_progress(watch.clone()));
        Either::Left(AttemptTimeoutFuture::new(inner, bounds, watch))
    }
}
