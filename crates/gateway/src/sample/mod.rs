//! The embedded sample: a shop whose tools show every kind of call.

mod orders;
mod tools;

use std::sync::Arc;

use callward::core::{BoxFuture, BoxStream, Caller, List};
use callward::{
    Delivery, ErrorKind, FreshnessMode, ReplicaSetId, Server, Tool, ToolCall, ToolDefinition,
    ToolError, ToolOutput, ToolServer, Tools,
};
use callward_mcp::server::{Backend, CallRequest, Introduction, ToolListing};
use futures_util::stream;

pub(crate) use self::orders::Orders;
use self::tools::tools;
use crate::error::AppError;

/// The replica set of the sample.
pub(crate) const SET: &str = "orders";
/// The server that may take destructive calls.
pub(crate) const PRIMARY: &str = "orders-primary";
/// The server that may not.
pub(crate) const REPLICA: &str = "orders-replica";

/// Two servers over one shop.
pub(crate) struct Embedded {
    /// What the servers share.
    pub(crate) orders: Arc<Orders>,
    /// Primary first.
    pub(crate) servers: [Tools; 2],
}

impl Embedded {
    /// Makes the servers.
    ///
    /// # Errors
    ///
    /// [`AppError`] if a fixed name is invalid; a test makes them.
    pub(crate) fn new() -> Result<Self, AppError> {
        let orders = Arc::<Orders>::default();
        let servers = [tools(PRIMARY, &orders)?, tools(REPLICA, &orders)?];
        Ok(Self { orders, servers })
    }

    /// Returns the servers as one replica set. Nothing but calls through the stack changes the
    /// shop, so results are served for their whole TTL.
    ///
    /// # Errors
    ///
    /// [`AppError`] if a fixed name is invalid; a test makes them.
    pub(crate) fn replica_set(&self) -> Result<Vec<Server>, AppError> {
        let set = ReplicaSetId::new(SET)?;
        let member = |server: Tools, weight| {
            let server = Server::new(server).in_set(set.clone()).weight(weight);
            server.freshness(FreshnessMode::Fixed)
        };
        let [primary, replica] = self.servers.clone();
        Ok(vec![
            member(primary, 80).category("caching"),
            member(replica, 20),
        ])
    }
}

/// Returns what the shop lists as its tools.
///
/// # Errors
///
/// [`AppError`] if a fixed name is invalid; a test starts them.
pub(crate) async fn definitions() -> Result<Vec<ToolDefinition>, AppError> {
    Ok(tools(SET, &Arc::default())?.list_tools().await?)
}

/// Returns the shop as one plain MCP server.
///
/// # Errors
///
/// [`AppError`] if a fixed name is invalid; a test starts it.
pub(crate) async fn plain() -> Result<impl Backend, AppError> {
    let server = tools(SET, &Arc::default())?;
    // they never change
    let listed = server.list_tools().await?;
    let raw = listed.into_iter().map(|tool| tool.raw).collect();
    let listing = Arc::new(ToolListing::new(1, raw));
    Ok(PlainBackend { server, listing })
}

/// An MCP server over [`Tools`].
struct PlainBackend {
    server: Tools,
    listing: Arc<ToolListing>,
}

impl Backend for PlainBackend {
    fn info(&self, _: &Arc<Caller>) -> Introduction {
        let mut info = Introduction::new("callward-sample", env!("CARGO_PKG_VERSION"));
        info.title = Some("Callward's sample shop".to_owned());
        let instructions = "A small shop. Orders 1 to 5 exist; nothing is kept after the end.";
        info.instructions = Some(instructions.to_owned());
        info
    }

    fn tools(&self, _: &Arc<Caller>) -> Arc<ToolListing> {
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

    fn changes(&self, _: &Caller) -> BoxStream<'static, List> {
        // a client that listens is notified of nothing, for as long as it listens
        Box::pin(stream::pending())
    }
}
