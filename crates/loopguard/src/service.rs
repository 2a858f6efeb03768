//! The service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::LoopGuardFuture;
use crate::call::Watch;
use crate::layer::Shared;

/// Answers in a server's place when one session sends the same failing call over and over.
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
        let shared = self.shared.as_ref();
        match shared.map_or(Ok(None), |shared| Watch::begin(shared, &call)) {
            Ok(watch) => LoopGuardFuture::new(Ok(self.inner.call(call)), watch),
            Err(answer) => LoopGuardFuture::new(Err(answer), None),
        }
    }
}
