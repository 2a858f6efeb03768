//! The arguments of `callward approvals`.

use clap::{Args, Subcommand};

use super::Gateway;

/// Show the calls that wait for an operator, and decide them
#[derive(Debug, Args)]
#[command(after_help = "\
With `[approvals]` in its config, a gateway sends a call whose plan requires confirmation only once
an operator has approved it: this call, with these arguments, of this principal, and once.

Who asks does not decide: calls of `callward call` are of the principal `operator`, as decisions
without a key are, and need the approval of another operator, with a key of their own.

Examples:
  callward approvals                                   what waits, the oldest first
  callward approvals list --all                        with what ended within a day
  callward approvals watch                             what happens, as it happens
  callward approvals show 3f9a                         its arguments, without secrets
  callward approvals approve 3f9a
  callward approvals deny 3f9a --note 'archive it instead'")]
pub(crate) struct Approvals {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    #[command(subcommand)]
    pub(crate) command: Option<ApprovalsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List requests: those that are pending first, then approved and running ones
    List {
        /// Also those that have ended: run, denied, expired or withdrawn
        #[arg(long)]
        all: bool,
    },
    /// Print each request that is new or has another state, until Ctrl-C or the gateway ends
    Watch,
    /// Show a request with the arguments that would run
    Show(WhichRequest),
    /// Let the call run, once; if its client does not wait any more, when it asks again
    Approve(Decide),
    /// Refuse the call, and equal ones for `approvals.cool_off`
    Deny(Decide),
}

#[derive(Debug, Args)]
pub(crate) struct WhichRequest {
    /// The id of the request, or how it begins: 4 digits or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Decide {
    #[command(flatten)]
    pub(crate) which: WhichRequest,
    /// The reason that the caller gets with a denial
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}
