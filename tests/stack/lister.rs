//! A server whose listings are scripted.

use std::sync::Arc;
use std::thread::ThreadId;

use callward::{Instances, Server, Stack, StackBuilder, ToolError, ToolOutput};
use callward_core::{
    BoxFuture, BoxStream, ServerEvent, ServerId, ToolCall, ToolDefinition, ToolServer,
};
use callward_testkit::{MockServer, MockService};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bed::{read, up, write};

pub(crate) type Listed = Result<Vec<ToolDefinition>, ToolError>;
type Script = dyn Fn(&MockServer, usize) -> Option<Listed> + Send + Sync;

/// A server, `s`, whose n-th listing, counted from 1, is what the script returns; `None` hangs.
pub(crate) struct Lister {
    pub(crate) mock: Arc<MockServer>,
    listed: Mutex<Vec<Instant>>,
    /// The threads that registered its lists.
    pub(crate) threads: Mutex<Vec<ThreadId>>,
    script: Box<Script>,
}

impl Lister {
    pub(crate) fn new(
        service: &MockService,
        script: impl Fn(&MockServer, usize) -> Option<Listed> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            mock: MockServer::new("s", Vec::new(), service.clone()),
            listed: Mutex::default(),
            threads: Mutex::default(),
            script: Box::new(script),
        })
    }

    /// Returns when it was listed, in seconds since the first time.
    pub(crate) fn listed_at(&self) -> Vec<f64> {
        let listed = self.listed.lock();
        let since = |at: &Instant| (*at - listed[0]).as_secs_f64();
        listed.iter().map(since).collect()
    }

    pub(crate) fn listings(&self) -> usize {
        self.listed.lock().len()
    }

    /// Builds a stack around it; it comes up while the stack starts.
    pub(crate) async fn start(self: &Arc<Self>, builder: StackBuilder) -> Stack {
        up(builder.server(Server::shared(self.clone())), &[&self.mock]).await
    }
}

impl ToolServer for Lister {
    fn id(&self) -> &ServerId {
        self.mock.id()
    }

    fn list_tools(&self) -> BoxFuture<'_, Listed> {
        self.listed.lock().push(Instant::now());
        match (self.script)(&self.mock, self.listings()) {
            Some(listed) => Box::pin(std::future::ready(listed)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn declares_tools(&self) -> bool {
        true
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.mock.call(call)
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        self.mock.ping()
    }

    fn instances(&self) -> Instances {
        let thread = std::thread::current().id();
        self.threads.lock().push(thread);
        Instances::Shared
    }

    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        self.mock.events()
    }
}

/// One tool that reads, `get_a`, and six that write, `add_0` to `add_5`.
pub(crate) fn some_tools() -> Listed {
    let writes = (0..6).map(|n| write(&format!("add_{n}")));
    let tools = writes.chain([read("get_a")]);
    Ok(tools
        .map(|tool| ToolDefinition::from_json(tool.to_string()).unwrap())
        .collect())
}
