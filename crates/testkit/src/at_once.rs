//! A service without cost, to measure the layers around it.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput};
use tower_service::Service;

/// Answers every call immediately with the same output.
#[derive(Debug, Clone)]
pub struct AtOnce(ToolOutput);

impl AtOnce {
    /// Takes the output to answer with.
    #[must_use]
    pub fn new(output: ToolOutput) -> Self {
        Self(output)
    }
}

impl Service<ToolCall> for AtOnce {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        ready(Ok(self.0.clone()))
    }
}
