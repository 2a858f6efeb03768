//! The embedded sample: a shop whose tools show every kind of call, served by real MCP servers
//! inside this process.

mod backend;
mod orders;
mod tools;

use std::io;
use std::sync::Arc;

use callward::{FreshnessMode, ReplicaSetId, Server, ServerId, ToolDefinition, ToolServer, Tools};
use callward_mcp::client::{Connect, Io, Target, Upstream, UpstreamOptions};
use callward_mcp::server::serve_stdio;
use tokio_util::sync::CancellationToken;

use crate::error::AppError;
use crate::metrics::Telemetry;

pub(crate) use self::backend::PlainBackend;
pub(crate) use self::orders::Orders;

/// The replica set of the sample.
pub(crate) const SET: &str = "orders";
/// The server that may take destructive calls.
pub(crate) const PRIMARY: &str = "orders-primary";
/// The server that may not.
pub(crate) const REPLICA: &str = "orders-replica";
/// How many bytes may wait in one direction between gateway and embedded server.
const PIPE: usize = 256 * 1024;

/// Splits the row of a table.
pub(crate) fn columns<const N: usize>(row: &'static str) -> [&'static str; N] {
    let mut columns = row.split(" | ");
    [(); N].map(|()| columns.next().unwrap_or_default())
}

/// Two MCP servers over one shop.
pub(crate) struct Embedded {
    /// What the servers share.
    pub(crate) orders: Arc<Orders>,
    /// The clients' ends, primary first.
    pub(crate) upstreams: [Upstream; 2],
}

impl Embedded {
    /// Starts the servers.
    ///
    /// # Errors
    ///
    /// [`AppError`] if a fixed name is invalid; a test starts them.
    pub(crate) async fn start(telemetry: &Telemetry) -> Result<Self, AppError> {
        let orders = Arc::<Orders>::default();
        let primary = upstream(PRIMARY, &orders, telemetry).await?;
        let replica = upstream(REPLICA, &orders, telemetry).await?;
        Ok(Self {
            orders,
            upstreams: [primary, replica],
        })
    }

    /// Returns the servers as one replica set. Nothing but calls through the stack changes the
    /// shop, so results are served for their whole TTL.
    ///
    /// # Errors
    ///
    /// [`AppError`] if a fixed name is invalid; a test starts them.
    pub(crate) fn servers(&self) -> Result<Vec<Server>, AppError> {
        let set = ReplicaSetId::new(SET)?;
        let [primary, replica] = self.upstreams.clone();
        Ok(vec![
            Server::new(primary)
                .in_set(set.clone())
                .weight(80)
                .category("caching")
                .freshness(FreshnessMode::Fixed),
            Server::new(replica)
                .in_set(set)
                .weight(20)
                .freshness(FreshnessMode::Fixed),
        ])
    }
}

/// Returns what the shop lists as its tools.
///
/// # Errors
///
/// [`AppError`] if a fixed name is invalid; a test starts them.
pub(crate) async fn definitions() -> Result<Vec<ToolDefinition>, AppError> {
    let tools = shop(SET, &Arc::default())?;
    Ok(tools.list_tools().await?)
}

/// Returns the shop as one plain MCP server.
///
/// # Errors
///
/// [`AppError`] if a fixed name is invalid; a test starts them.
pub(crate) async fn plain(server: &str, orders: &Arc<Orders>) -> Result<PlainBackend, AppError> {
    Ok(PlainBackend::new(shop(server, orders)?).await?)
}

fn shop(server: &str, orders: &Arc<Orders>) -> Result<Tools, AppError> {
    tools::tools(server, orders)
        .map_err(|error| AppError::Usage(format!("the sample cannot be built: {error}")))
}

/// Starts an MCP server in this process, and connects to it as to any other: over a pair of pipes.
async fn upstream(
    id: &str,
    orders: &Arc<Orders>,
    telemetry: &Telemetry,
) -> Result<Upstream, AppError> {
    let backend = Arc::new(plain(id, orders).await?);
    let connect = Io::new(move || {
        let backend = backend.clone();
        async move {
            let (client, server) = tokio::io::duplex(PIPE);
            tokio::spawn(async move {
                let (reader, writer) = tokio::io::split(server);
                if let Err(error) =
                    serve_stdio(backend, reader, writer, CancellationToken::new()).await
                {
                    tracing::debug!(%error, "an embedded server ended");
                }
            });
            let (reader, writer) = tokio::io::split(client);
            let connect: Connect = (Box::new(reader), Box::new(writer));
            Ok::<_, io::Error>(connect)
        }
    });
    let id = ServerId::new(id)?;
    let mut options = UpstreamOptions::default();
    options.observer = Some(telemetry.observer());
    Ok(Upstream::start(id, Target::Io(connect), options))
}
