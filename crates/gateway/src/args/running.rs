//! The command lines of the commands that ask a running gateway.

use std::path::PathBuf;

use callward::{ServerId, Weight};
use clap::Subcommand;
use serde::{Deserialize, Serialize};

/// Which running gateway a command is for, by default the only one that is running, and how its
/// answer is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    /// The admin address of the gateway: `http://HOST:PORT` or `unix:/PATH` (default: the gateway
    /// that is running)
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// The gateway that runs with this config file
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One line for each tool that was called since the gateway started, and one for all. `hit rate` is the
share of look-ups that were answered without a server; `saved` the time those would have taken.

--json prints one object: {\"total\": {...}, \"tools\": [...]}, as GET /api/cache answers.

Examples:
  callward cache
  callward cache purge --tool orders__get_order")]
pub(crate) struct Cache {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    #[command(subcommand)]
    pub(crate) command: Option<CacheCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Forget what is kept: all of it, or of one tool, server, tag or principal
    Purge(PurgeArgs),
}

#[derive(Debug, clap::Args, Serialize)]
#[group(required = true, multiple = false)]
#[command(after_help = "\
Running reads are answered, and their answers are not kept. A name that the gateway does not know is
an error, and nothing is forgotten; a tag or principal may be any text.

Examples:
  callward cache purge --all
  callward cache purge --server orders-primary
  callward cache purge --tag order:7")]
pub(crate) struct PurgeArgs {
    /// Everything
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) all: bool,
    /// The results of this tool: as clients see it, or SET.TOOL
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// What was read from this server, and from those that stand in for it
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<String>,
    /// The results of tools with this tag, and what was read from scopes of this name
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// What is this principal's alone
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
}

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

pub(super) const LIMITS_HELP: &str = "\
Rates: of tools, callers and servers, those that were called upon. `refused` calls were not sent.
Places: how many calls run at once on each server, and on those of its tools that have a limit of
their own. Calls are shed when too many wait, and expire when their time is over while they wait.
Budgets: how many retries the calls of a replica set have paid for, and how many were refused.
Hedges: second attempts at slow reads. Loop guard: failing calls that a session keeps repeating.

--json prints one object, as GET /api/limits answers.";

pub(super) const EVENTS_HELP: &str = "\
One line for each attempt of a call that a server got, or that no server could get, for each change
of a server's health, for each session, user or value that is kept at a server, for each listing of
a server's tools, and for each tool that is added, removed, refused, held, changed or renamed. A
slow reader gets the number of events it missed; no call waits for it. Ends with Ctrl-C, or with the
gateway.

--json prints the events as GET /api/routes/events sends them, one JSON object a line; `type` is
routeDecision, routeFailed, healthUpdate, affinitySet, affinityExpired, toolRegistered,
toolUnregistered, toolRefused, toolHeld, toolChanged, toolRenamed, annotationsUpdated,
discoveryCompleted, discoveryFailed, serverUp, serverDown or missed.

Example:
  callward events --json | jq 'select(.type == \"healthUpdate\")'";
