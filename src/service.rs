//! The stack as a Tower service, and its future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::order::Answer;
use crate::stack::Stack;

/// The stack as a Tower service. Always ready: waiting happens in the call.
#[derive(Debug, Clone)]
pub struct StackService(pub(crate) Stack);

impl Service<ToolCall> for StackService {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = StackFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> StackFuture {
        self.0.run(call)
    }
}

pin_project! {
    /// One call on its way through the stack. Dropping it cancels the call.
    pub struct StackFuture {
        #[pin]
        pub(crate) inner: Answer,
    }
}

impl Future for StackFuture {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().inner.poll(cx)
    }
}

impl fmt::Debug for StackFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackFuture").finish_non_exhaustive()
    }
}
