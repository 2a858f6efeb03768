//! The innermost service: calls one server.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{
    BoxFuture, CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolServer,
};
use tokio::time::Instant;
use tower_service::Service;

/// Calls one server. Servers differ in type, so the call's only boxed future is here.
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
    type Future = LeafFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> LeafFuture {
        if call.plan().is_write()
            && let Some(inbound) = call.inbound()
            && !inbound.may_send()
        {
            return LeafFuture {
                answer: Box::pin(ready(Err(client_left()))),
                timed: None,
            };
        }
        let timed = call.record().cloned().map(Timed::begin);
        LeafFuture {
            answer: self.0.call(call),
            timed,
        }
    }
}

#[cold]
fn client_left() -> ToolError {
    ToolError::new(
        ErrorKind::Cancelled,
        Delivery::NotSent,
        "the client left before the call was sent",
    )
}

/// A server's answer. How long the server had the call is written into its record, if it has one.
pub(crate) struct LeafFuture {
    // dropped first: its end counts as the server's time
    answer: BoxFuture<'static, Result<ToolOutput, ToolError>>,
    timed: Option<Timed>,
}

impl Future for LeafFuture {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.answer.as_mut().poll(cx);
        if answer.is_ready() {
            self.timed = None;
        }
        answer
    }
}

/// A server has the call, until this is dropped.
struct Timed {
    record: Arc<CallRecord>,
    began: Instant,
}

impl Timed {
    fn begin(record: Arc<CallRecord>) -> Self {
        Self {
            record,
            began: Instant::now(),
        }
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.record.with(|facts| facts.server_time += took);
    }
}
