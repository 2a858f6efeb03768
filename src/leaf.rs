//! The innermost service: one server, called.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolServer};
use tower_service::Service;

/// Calls one server. Servers differ in type, so this is where the call's one boxed future stands.
#[derive(Clone)]
pub(crate) struct Leaf(Arc<dyn ToolServer>);

impl Leaf {
    pub(crate) fn new(server: Arc<dyn ToolServer>) -> Self {
        Self(server)
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leaf").field(self.0.id()).finish()
    }
}

impl Service<ToolCall> for Leaf {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        self.0.call(call)
    }
}
