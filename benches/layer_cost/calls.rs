//! The requests, and the service that answers them at once.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use callward::{Caller, Principal, Tool, ToolCall, ToolError, ToolOutput};
use callward_testkit::tool;
use tower::Service;

/// Answers each call at once. Each thread has an answer of its own, so that threads which share a
/// layer do not also meet at the count of references to one answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtOnce;

thread_local! {
    static ANSWER: ToolOutput = ToolOutput::text("x".repeat(200));
}

impl Service<ToolCall> for AtOnce {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        ready(Ok(ANSWER.with(ToolOutput::clone)))
    }
}

/// Which calls a row is measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// The same read again and again.
    Same,
    /// Reads that were never made before.
    New,
    /// The same write again and again.
    Writes,
}

/// Makes the calls of one thread.
pub(crate) struct Maker {
    calls: Calls,
    tool: Arc<Tool>,
    caller: Arc<Caller>,
    thread: usize,
    made: u64,
}

impl Maker {
    pub(crate) fn new(calls: Calls, thread: usize) -> Self {
        let tool = match calls {
            Calls::Same | Calls::New => tool("get_order").read_only().build(),
            Calls::Writes => tool("add_order").build(),
        };
        let caller = Arc::new(Caller::new(Principal::new(format!("agent-{thread}"))));
        Self {
            calls,
            tool,
            caller,
            thread,
            made: 0,
        }
    }

    /// Makes so many calls.
    pub(crate) fn make(&mut self, count: usize) -> Vec<ToolCall> {
        let first = self.next();
        let more = (1..count).map(|_| match self.calls {
            Calls::New => self.next(),
            Calls::Same | Calls::Writes => first.clone(),
        });
        let mut calls: Vec<_> = more.collect();
        calls.push(first);
        calls
    }

    fn next(&mut self) -> ToolCall {
        if self.calls == Calls::New {
            self.made += 1;
        }
        let (thread, id, note) = (self.thread, self.made, "n".repeat(150));
        let arguments = format!(r#"{{"tenant":"{thread}","id":{id:>12},"note":"{note}"}}"#);
        ToolCall::new(self.tool.clone(), arguments).with_caller(self.caller.clone())
    }
}
