//! The innermost service: calls one server.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{
    BoxFuture, CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolServer,
};
use tokio::time::Instant;
use tower_service::Service;

/// Calls one server.
#[derive(Clone)]
pub(crate) struct Leaf(pub(crate) Arc<dyn ToolServer>);

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
        if call.plan().is_write()
            && let Some(inbound) = &call.inbound
            && !inbound.may_send()
        {
            return Box::pin(ready(Err(client_left())));
        }
        let timed = call.record.clone().map(|record| Timed {
            record,
            began: Instant::now(),
        });
        let answer = self.0.call(call);
        if timed.is_none() {
            return answer;
        }
        Box::pin(async move {
            // dropped after the answer: its end counts as the server's time
            let _timed = timed;
            answer.await
        })
    }
}

#[cold]
fn client_left() -> ToolError {
    let text = "the client left before the call was sent";
    ToolError::new(ErrorKind::Cancelled, Delivery::NotSent, text)
}

/// A server has the call, until this is dropped; its record gets that time.
struct Timed {
    record: Arc<CallRecord>,
    began: Instant,
}

impl Drop for Timed {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.record.with(|facts| facts.server_time += took);
    }
}
