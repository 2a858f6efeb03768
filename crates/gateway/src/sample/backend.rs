//! Serves in-process tools over MCP without a stack: no cache, no retries, no routing.

use std::sync::Arc;

use callward::core::{BoxFuture, BoxStream};
use callward::{Delivery, ErrorKind, Tool, ToolCall, ToolError, ToolOutput, ToolServer, Tools};
use callward_mcp::server::{Backend, CallRequest, Introduction, ToolListing};
use futures_util::stream;

/// An MCP server over [`Tools`].
pub(crate) struct PlainBackend {
    server: Tools,
    listing: Arc<ToolListing>,
}

impl PlainBackend {
    /// Lists the tools once; they never change.
    ///
    /// # Errors
    ///
    /// None in practice: in-process tools are always listed.
    pub(crate) async fn new(server: Tools) -> Result<Self, ToolError> {
        let listed = server.list_tools().await?;
        let raw = listed.into_iter().map(|tool| tool.raw).collect();
        Ok(Self {
            server,
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
        // the plan is not read: a plain server does as instructed
        match Tool::mutating(&request.name) {
            Ok(tool) => {
                let call = ToolCall::new(tool, request.arguments);
                self.server.call(call.with_caller(request.caller))
            }
            Err(error) => {
                let error =
                    ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, error.to_string());
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        // a client that listens is notified of nothing, for as long as it listens
        Box::pin(stream::pending())
    }
}
