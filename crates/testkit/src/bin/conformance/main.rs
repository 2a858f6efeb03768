//! An MCP server with what the conformance suite asks servers for, over HTTP or stdio.
//!
//! `scripts/conformance.sh` runs the suite against it and against a gateway in front of it. It is
//! built on rmcp, so that the gateway is held to another implementation of the protocol.
//! `data/conformance.json` has what the server offers; the modules have how it behaves.

mod rounds;
mod script;
mod server;
mod tasks;

use std::borrow::Cow;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;

use clap::{Parser, ValueEnum};
use rmcp::ServiceExt;
use rmcp::model::ProtocolVersion;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::server::Server;

/// Serves what the conformance suite asks servers for
#[derive(Parser)]
struct Args {
    /// Serves HTTP at the path `/mcp` of this address, which it prints. Default: stdio
    #[arg(long)]
    listen: Option<SocketAddr>,
    #[arg(long, value_enum, default_value = "both")]
    era: Era,
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    Legacy,
    Modern,
    Both,
}

impl Era {
    const ALL: &[ProtocolVersion] = &[
        ProtocolVersion::V_2026_07_28,
        ProtocolVersion::V_2025_11_25,
        ProtocolVersion::V_2025_06_18,
    ];

    fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        let (modern, legacy) = Self::ALL.split_at(1);
        Cow::Borrowed(match self {
            Self::Legacy => legacy,
            Self::Modern => modern,
            Self::Both => Self::ALL,
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let server = Server::new(args.era.versions())?;
    let Some(address) = args.listen else {
        server.serve(stdio()).await?.waiting().await?;
        return Ok(());
    };
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind(address).await?;
    let mut out = std::io::stdout();
    writeln!(out, "http://{}/mcp", listener.local_addr()?)?;
    out.flush()?;
    let routes = axum::Router::new().route_service("/mcp", service);
    Ok(axum::serve(listener, routes).await?)
}
