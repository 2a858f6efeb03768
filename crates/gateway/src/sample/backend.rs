//! Serves in-process tools over MCP without a stack: no cache, no retries, no routing.

use std::collections::HashMap;
use std::sync::Arc;

use callward::core::{BoxFuture, BoxStream, Resolved, resolve::Source};
use callward::{
    CallPlan, Delivery, ErrorKind, Profile, ReplicaSetId, Tool, ToolCall, ToolError, ToolName,
    ToolOutput, ToolServer, Tools,
};
use callward_mcp::server::{Backend, CallRequest, Introduction, ToolListing};
use futures_util::stream;

/// An MCP server over [`Tools`].
pub(crate) struct PlainBackend {
    server: Tools,
    tools: HashMap<ToolName, Arc<Tool>>,
    listing: Arc<ToolListing>,
}

impl PlainBackend {
    /// Lists the tools once; they never change.
    ///
    /// # Errors
    ///
    /// None in practice: in-process tools are always listed.
    pub(crate) async fn new(server: Tools) -> Result<Self, ToolError> {
        let set = ReplicaSetId::from(server.id().clone());
        let definitions = server.list_tools().await?;
        let raw = definitions.iter().map(|tool| tool.raw.clone()).collect();
        let tools = definitions
            .into_iter()
            .map(|definition| {
                // these plans are not read: a plain server does as instructed
                let hints = Resolved::from_single(definition.annotations.clone(), Source::Declared);
                let plan = CallPlan::derive(&hints, &Profile::standard());
                let tool = Tool::new(set.clone(), definition, hints, plan);
                (tool.name().clone(), Arc::new(tool))
            })
            .collect();
        Ok(Self {
            server,
            tools,
            listing: Arc::new(ToolListing::new(1, raw)),
        })
    }
}

impl Backend for PlainBackend {
    fn info(&self) -> Introduction {
        let mut info = Introduction::new("callward-sample", env!("CARGO_PKG_VERSION"));
        info.title = Some("Callward's sample shop".to_owned());
        let instructions = "A small shop. Orders 1 to 5 exist; nothing is kept after the end.";
        info.instructions = Some(instructions.to_owned());
        info
    }

    fn tools(&self) -> Arc<ToolListing> {
        self.listing.clone()
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        match self.tools.get(request.name.as_str()) {
            Some(tool) => self
                .server
                .call(ToolCall::new(tool.clone(), request.arguments).with_caller(request.caller)),
            None => Box::pin(std::future::ready(Err(ToolError::new(
                ErrorKind::UnknownTool,
                Delivery::NotSent,
                format!("no tool {:?} here", request.name),
            )))),
        }
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        // a client that listens is notified of nothing, for as long as it listens
        Box::pin(stream::pending())
    }
}
