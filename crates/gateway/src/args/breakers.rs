//! The command line of `callward breakers`.

use clap::Subcommand;
use serde::{Deserialize, Serialize};

use super::Gateway;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One line for each server, and for each of its tools that was called. A breaker that is open refuses
calls; when its time has come, one call is let through as a probe.

--json prints an array, as GET /api/breakers answers.

Examples:
  callward breakers
  callward breakers open orders-primary              take a server out of service
  callward breakers open orders-primary get_order    or one tool of it
  callward breakers release orders-primary           let the breaker decide again")]
pub(crate) struct Breakers {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<BreakersCommand>,
}

/// An order to a running gateway, too.
#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum BreakersCommand {
    /// Hold a breaker open until it is released: no call passes
    Open(WhichBreaker),
    /// Hold a breaker closed until it is released: all calls pass, and nothing is counted
    Close(WhichBreaker),
    /// Let a breaker that was held decide again: it is closed, and counts from now on
    Release(WhichBreaker),
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhichBreaker {
    /// The server
    pub(crate) server: String,
    /// The tool, by its server's name for it or as clients see it (default: the whole server)
    #[arg(conflicts_with = "discovery")]
    #[serde(default)]
    pub(crate) tool: Option<String>,
    /// The listing of the server's tools instead
    #[arg(long)]
    #[serde(default)]
    pub(crate) discovery: bool,
}
