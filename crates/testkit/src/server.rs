//! A scripted [`ToolServer`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callward_core::{
    BoxFuture, BoxStream, ServerEvent, ServerId, ToolCall, ToolDefinition, ToolError, ToolOutput,
    ToolServer,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tower::ServiceExt;

use crate::MockService;

/// The result of a ping.
#[derive(Debug, Clone)]
pub enum Ping {
    /// An answer or an error.
    Answered(Result<(), ToolError>),
    /// A panic.
    Panics,
    /// No answer.
    Silence,
}

/// A server with scripted tools, answers and events.
#[derive(Debug)]
pub struct MockServer {
    id: ServerId,
    tools: Mutex<Result<Vec<Value>, ToolError>>,
    service: MockService,
    pings: AtomicUsize,
    ping: Mutex<Ping>,
    listeners: Mutex<Vec<mpsc::UnboundedSender<ServerEvent>>>,
}

impl MockServer {
    /// Creates a server with these tools, in the form of `tools/list`.
    pub fn new(id: &str, tools: Vec<Value>, service: MockService) -> Arc<Self> {
        Arc::new(Self {
            id: ServerId::new(id).unwrap(),
            tools: Mutex::new(Ok(tools)),
            service,
            pings: AtomicUsize::new(0),
            ping: Mutex::new(Ping::Answered(Ok(()))),
            listeners: Mutex::new(Vec::new()),
        })
    }

    /// Sets the result of pings. Default: an answer.
    pub fn set_ping(&self, ping: Ping) {
        *self.ping.lock() = ping;
    }

    /// Returns the number of pings.
    pub fn pings(&self) -> usize {
        self.pings.load(Ordering::SeqCst)
    }

    /// Sets the result of listing.
    pub fn set_tools(&self, tools: Result<Vec<Value>, ToolError>) {
        *self.tools.lock() = tools;
    }

    /// Sends an event to all listeners.
    pub fn emit(&self, event: &ServerEvent) {
        self.listeners
            .lock()
            .retain(|listener| listener.send(event.clone()).is_ok());
    }
}

impl ToolServer for MockServer {
    fn id(&self) -> &ServerId {
        &self.id
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        let listed = self.tools.lock().clone().map(|tools| {
            tools
                .iter()
                .map(|tool| ToolDefinition::from_json(tool.to_string()).unwrap())
                .collect()
        });
        Box::pin(std::future::ready(listed))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(self.service.clone().oneshot(call))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        self.pings.fetch_add(1, Ordering::SeqCst);
        match self.ping.lock().clone() {
            Ping::Answered(answer) => Box::pin(std::future::ready(answer)),
            Ping::Panics => Box::pin(async { panic!("a ping that panics") }),
            Ping::Silence => Box::pin(std::future::pending()),
        }
    }

    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        self.listeners.lock().push(sender);
        Some(Box::pin(futures_util::stream::poll_fn(move |cx| {
            receiver.poll_recv(cx)
        })))
    }
}
