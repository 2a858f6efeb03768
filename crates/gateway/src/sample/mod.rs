//! The embedded sample: a shop whose tools show every kind of call.

mod backend;
mod orders;
mod tools;

use std::sync::Arc;

use callward::{FreshnessMode, ReplicaSetId, Server, ToolDefinition, ToolServer, Tools};

use crate::error::AppError;

pub(crate) use self::backend::PlainBackend;
pub(crate) use self::orders::Orders;
use self::tools::tools;

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
pub(crate) async fn plain() -> Result<PlainBackend, AppError> {
    Ok(PlainBackend::new(tools(SET, &Arc::default())?).await?)
}
