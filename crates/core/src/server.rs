//! What answers calls: the bound of layers, and the interface to servers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use tower_service::Service;

use crate::{
    Caller, FreshnessMode, InstanceStatus, Instances, List, ServerId, ToolCall, ToolDefinition,
    ToolError, ToolOutput, Watch,
};

/// An owned, boxed future: the one erased box of a call, at the leaf.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An owned, boxed stream.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// A service that answers tool calls. Layers wrap one and are one.
///
/// Implemented for every matching [`Service`], so that layers write `S: ToolService` instead of
/// five bounds.
pub trait ToolService:
    Service<ToolCall, Response = ToolOutput, Error = ToolError, Future: Send> + Clone + Send + 'static
{
}

impl<S> ToolService for S where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Something that executes tools: an upstream MCP server, or an in-process set of closures.
///
/// Dropping the future of [`call`](Self::call) cancels the call, as far as the server allows it. A
/// server that is down answers at once with [`Delivery::NotSent`](crate::Delivery::NotSent) and
/// reconnects by itself.
pub trait ToolServer: Send + Sync + 'static {
    /// Returns the server's id.
    fn id(&self) -> &ServerId;

    /// Lists the tools, all pages of them. One that cannot be used has a
    /// [fault](ToolDefinition::fault), and is not offered.
    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>>;

    /// Lists the tools as [`list_tools`](Self::list_tools) does, and notifies `watch` of each
    /// request that is sent for it. Default: no watcher is notified.
    fn list_tools_watched(
        &self,
        watch: Watch,
    ) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        let _ = watch;
        self.list_tools()
    }

    /// Returns `true` if the server says that it has tools: an empty list is listed again then.
    /// Default: `false`, right for a server in this process, whose list is always complete.
    fn declares_tools(&self) -> bool {
        false
    }

    /// Returns the version of the software that the server runs, if it is known. Default: `None`.
    fn version(&self) -> Option<String> {
        None
    }

    /// Executes one call. Every failure states how far the call got.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Checks that the server is alive, as cheaply as possible. Any answer counts, a refusal too.
    /// The caller sets the timeout.
    ///
    /// Default: it is alive. That is right for a server in this process; one behind a connection
    /// should send a request.
    fn ping(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns what decides how long results of reads are kept if no lifetime is stated. Default:
    /// [`FreshnessMode::Fixed`], right for tools of this process, whose author knows them.
    fn freshness(&self) -> FreshnessMode {
        FreshnessMode::Fixed
    }

    /// Returns a stream of what changes about the server; `None` if nothing ever does.
    fn events(&self) -> Option<BoxStream<'static, ServerEvent>> {
        None
    }

    /// Returns how the state that the server keeps is divided among callers. It is called after
    /// each listing, which shows whether a server behind HTTP has sessions.
    ///
    /// Default: [`Instances::Shared`].
    fn instances(&self) -> Instances {
        Instances::Shared
    }

    /// Notifies the server that a session has ended, so its instance may end. Must not block.
    /// Default: does nothing.
    fn session_ended(&self, caller: &Caller) {
        let _ = caller;
    }

    /// Returns the instances that run now. Default: none, as for a server that has no others than
    /// itself.
    fn instance_statuses(&self) -> Vec<InstanceStatus> {
        Vec::new()
    }
}

/// Something changed about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The connection is lost, and why. Calls fail until it is back.
    Down(String),
    /// Some of the state behind the tools may be lost or changed, as by the restart of one
    /// instance: what was read before may not hold any more. The tools are the same.
    Stale,
    /// What the server lists may have changed: list it again.
    ListChanged(List),
    /// What resources hold may have changed: the one with this URI, or some that no client is
    /// subscribed to.
    ResourceUpdated(Option<Arc<str>>),
    /// The connection is up, for the first time or again.
    Up,
}

/// The recipient of the progress reports of a running call.
///
/// Called from the connection's reading task: it must neither block nor panic.
pub trait ProgressSink: Send + Sync {
    /// Takes one report: the raw JSON `params` of the server's `notifications/progress`, with the
    /// server's own token still in it.
    fn report(&self, params: &[u8]);

    /// Notes that the call starts or stops waiting for a person: for a confirmation, say, or for
    /// an answer to a question. Such time counts against no timeout. Default: does nothing.
    fn waits_for_person(&self, waits: bool) {
        let _ = waits;
    }
}
