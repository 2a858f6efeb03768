//! Upstream servers: the leaves of the stack, over pipes and streamable HTTP.
//!
//! An [`Upstream`] is one MCP server as a [`ToolServer`](tollgate_core::ToolServer). It finds out
//! which era the server belongs to, keeps the connection, and brings it back after every failure,
//! for ever. Definitions, arguments and results go through as the bytes they are.
//!
//! **Rule.** A call is sent once. It is sent again only where the server has certainly not run it:
//! its session had ended (HTTP 404), or its mirrored headers were refused (−32020). Everything else
//! is reported with its [`Delivery`](tollgate_core::Delivery), and whoever knows the tool decides.
//!
//! **Readiness.** [`Upstream::start`](UpstreamBuilder::start) never waits and never fails. A call to
//! a child process that is down fails at once, as not sent. HTTP has no connection to wait for, so
//! such a call is tried.
//!
//! **Cancellation.** Dropping a call's future tells the server: `notifications/cancelled` on pipes
//! and for legacy HTTP, a closed response stream for modern HTTP. A call still in the queue is taken
//! out of it and never written.
//!
//! **Clone.** Handles share one connection. The last one dropped ends it, and the child with it; a
//! running call counts as a handle.
//!
//! **Errors.** `ConnectFailed`, `ConnectionLost`, `InvalidCall`, `Protocol`, `RateLimited`,
//! `ServerFault`, `Unauthorized`; `Timeout` for listings only. A call has no timeout here.
//!
//! ```
//! use tollgate_core::{ServerId, ToolServer};
//! use tollgate_mcp::upstream::{CommandSpec, Target, Upstream};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let command = CommandSpec::new("mcp-server-time").with_arg("--local-timezone=UTC");
//! let time = Upstream::builder(ServerId::new("time")?, Target::Command(command)).start();
//! time.ready(std::time::Duration::from_secs(30)).await?;
//! for tool in time.list_tools().await? {
//!     println!("{}", tool.name());
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod ask;
mod backoff;
mod builder;
mod handle;
mod handshake;
mod http;
mod info;
mod list;
mod peer;
mod pipe;
mod shared;
mod target;

pub use builder::{EraChoice, UpstreamBuilder};
pub use handle::Upstream;
pub use info::ServerInfo;
pub use shared::UpstreamStatus;
pub use target::{CommandSpec, Connect, HttpSpec, InvalidHttpSpec, Io, Target};
