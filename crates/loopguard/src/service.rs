//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::LoopGuardFuture;
use crate::shared::{Decision, Shared};

/// Answers in a server's place when one session repeats the same failing call over and over.
#[derive(Debug, Clone)]
pub struct LoopGuard<S> {
    inner: S,
    shared: Option<Arc<Shared>>,
}

impl<S> LoopGuard<S> {
    pub(crate) const fn new(inner: S, shared: Option<Arc<Shared>>) -> Self {
        Self { inner, shared }
    }
}

impl<S: ToolService> Service<ToolCall> for LoopGuard<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = LoopGuardFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let decision = match &self.shared {
            Some(shared) => shared.decide(&call),
            None => Decision::Pass,
        };
        let watch = match decision {
            Decision::Answer(output) => return LoopGuardFuture::answered(output),
            Decision::Pass => None,
            Decision::Watch(watch) => Some(watch),
        };
        LoopGuardFuture::sent(self.inner.call(call), watch)
    }
}
