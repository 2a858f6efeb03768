//! The command lines of `callward servers` and `callward events`.

use callward::{ServerId, Weight};
use clap::Subcommand;

use super::Gateway;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
`state` is that of the server's breaker and connection. `errors` is the share of faults among the
latest 1,000 answers and faults, and `p50` and `p99` are of those answers.

What is changed here holds until the gateway ends: the config is not written.

--json prints an array, as GET /api/servers answers; of a change, one object.

Examples:
  callward servers
  callward servers drain orders-1            it ends its calls, and gets no new ones
  callward servers undrain orders-1
  callward servers weigh orders-2 80         its share, and from 50 on destructive calls
  callward events                            follow which server gets which call")]
pub(crate) struct Servers {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<ServersCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// Give a server no new calls; those it has run to their end
    Drain(WhichServer),
    /// Give a drained server calls again
    Undrain(WhichServer),
    /// Change what a server weighs
    Weigh(Weigh),
}

#[derive(Debug, clap::Args)]
pub(crate) struct WhichServer {
    /// The server
    #[arg(value_name = "ID")]
    pub(crate) server: ServerId,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Weigh {
    /// The server
    #[arg(value_name = "ID")]
    pub(crate) server: ServerId,
    /// 0 to 100; at 0 it gets what no other can take
    #[arg(value_name = "N")]
    pub(crate) weight: Weight,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One line for each attempt of a call that a server got, or that no server could get, for each change
of a server's health, for each session, user or value that is kept at a server, and for each tool
that is not offered, or not under its own name. A slow reader gets the number of events it missed;
no call waits for it. Ends with Ctrl-C, or with the gateway.

--json prints the events as GET /api/routes/events tells them, one JSON object a line; `type` is
routeDecision, routeFailed, healthUpdate, affinitySet, affinityExpired, toolRefused, toolRenamed or
missed.

Examples:
  callward events
  callward events --json | jq 'select(.type == \"healthUpdate\")'")]
pub(crate) struct Events {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}
