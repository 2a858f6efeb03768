//! Upstream servers: the leaves of the stack, over pipes and streamable HTTP.
//!
//! An [`Upstream`] is one MCP server as a [`ToolServer`](callward_core::ToolServer). It detects the
//! era of the server, keeps the connection and restores it after every failure. Definitions,
//! arguments and results pass through as bytes.
//!
//! **Rule.** A call is sent once. It is sent again only if the server certainly did not run it: its
//! session had ended (HTTP 404 to another request), or its mirrored headers were refused (HTTP 400
//! with −32020). Everything else is reported with its [`Delivery`](callward_core::Delivery).
//!
//! **Readiness.** [`Upstream::start`] never waits and never fails. A call to a child process that
//! is down fails at once, as not sent.
//!
//! ```
//! use callward_core::{ServerId, ToolServer};
//! use callward_mcp::client::{CommandSpec, Target, Upstream, UpstreamOptions};
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let command = CommandSpec::new("mcp-server-time").with_args(["--local-timezone=UTC"]);
//! let (id, target) = (ServerId::new("time")?, Target::Command(command));
//! let time = Upstream::start(id, target, UpstreamOptions::default());
//! time.ready(std::time::Duration::from_secs(30)).await?;
//! println!("{} tools", time.list_tools().await?.len());
//! # Ok(())
//! # }
//! ```
#![doc = include_str!("details.md")]

mod answer;
mod ask;
mod asked;
mod backoff;
mod carried;
mod handle;
mod handshake;
mod http;
mod info;
mod instances;
mod list;
mod options;
mod peer;
pub(crate) mod pipe;
mod rounds;
mod shared;
mod target;
mod watched;

pub use handle::Upstream;
#[cfg(fuzzing)]
pub(crate) use http::events as http_events;
pub use info::ServerInfo;
pub use options::{EraChoice, OnlyClient, Rewrite, UpstreamOptions};
pub use pipe::start_advice;
pub use shared::UpstreamStatus;
pub use target::{CommandSpec, Connect, HttpSpec, Io, Target};
