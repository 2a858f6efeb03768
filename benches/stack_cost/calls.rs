//! The tools, and the calls that are made of them.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use callward::{Annotations, Stack, Tool, ToolCall, ToolError, ToolOutput, ToolSpec, Tools};
use tokio::runtime::{Builder, Runtime};
use tower::Service;

/// What is called in most rows.
pub(crate) const READ: &str = "bench.get_item_0";
pub(crate) const WRITE: &str = "bench.create_item_0";
/// How many tools of each kind are called where several are.
pub(crate) const CALLED: usize = 5;

/// Answers each call at once. Each thread has an answer of its own, so that threads do not meet at
/// the count of references to one.
#[derive(Clone)]
struct AtOnce;

impl Service<ToolCall> for AtOnce {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        thread_local! {
            static ANSWER: ToolOutput = ToolOutput::text("x".repeat(200));
        }
        ready(Ok(ANSWER.with(ToolOutput::clone)))
    }
}

/// Makes a server of this many tools, half of which read, and half of which write.
pub(crate) fn server(tools: usize) -> Tools {
    (0..tools / 2).fold(Tools::new("bench").unwrap(), |server, number| {
        let reads = Annotations::default().with_read_only(true);
        let writes = Annotations::default().with_read_only(false);
        let read = ToolSpec::new(format!("get_item_{number}")).annotations(reads);
        let write = ToolSpec::new(format!("create_item_{number}")).annotations(writes);
        let server = server.service(read, AtOnce).unwrap();
        server.service(write, AtOnce).unwrap()
    })
}

/// A stack around one server, and the runtime it was started on.
pub(crate) struct World {
    pub(crate) stack: Stack,
    _runtime: Runtime,
}

impl World {
    /// Starts a stack around a server of this many tools.
    pub(crate) fn new(tools: usize) -> Arc<Self> {
        let runtime = runtime();
        let starting = Stack::builder().server(server(tools)).build();
        let stack = runtime.block_on(starting).unwrap();
        assert_eq!(stack.catalogue().entries().len(), tools);
        Arc::new(Self {
            stack,
            _runtime: runtime,
        })
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Makes calls of a tool with this many distinct arguments.
pub(crate) fn calls(tool: &Arc<Tool>, distinct: usize) -> Arc<[ToolCall]> {
    let arguments = arguments(distinct);
    let call = |text: &Bytes| ToolCall::new(tool.clone(), text.clone());
    arguments.iter().map(call).collect()
}

/// Makes this many distinct arguments of 200 bytes each.
pub(crate) fn arguments(distinct: usize) -> Arc<[Bytes]> {
    (0..distinct)
        .map(|number| argument(number as u64))
        .collect()
}

/// Makes the arguments of one number: 200 bytes.
pub(crate) fn argument(number: u64) -> Bytes {
    let note = "n".repeat(136);
    let text =
        format!(r#"{{"id":{number:>12},"tenant":"acme","expand":["a","b"],"note":"{note}"}}"#);
    debug_assert_eq!(text.len(), 200);
    text.into()
}
