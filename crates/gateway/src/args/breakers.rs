//! The command line of `callward breakers`.

use clap::Subcommand;

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

#[derive(Debug, Subcommand)]
pub(crate) enum BreakersCommand {
    /// Hold a breaker open until it is released: no call passes
    Open(WhichBreaker),
    /// Hold a breaker closed until it is released: all calls pass, and nothing is counted
    Close(WhichBreaker),
    /// Let a breaker that was held decide again: it is closed, and counts from now on
    Release(WhichBreaker),
}

#[derive(Debug, clap::Args)]
pub(crate) struct WhichBreaker {
    /// The server
    pub(crate) server: String,
    /// The tool, by its server's name for it or as clients see it (default: the whole server)
    pub(crate) tool: Option<String>,
}
