//! The arguments of `callward approvals`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Gateway;
use crate::config::parse_duration;

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
  callward approvals approve 3f9a 77c0 b31e            a result for each
  callward approvals deny 3f9a --note 'archive it instead'
  callward approvals digest                            what is always approved
  callward approvals grant shop.delete_order --when '{\"test\": true}' --uses 20 --until 8h")]
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
    /// Show the tools that were asked about 5 times or more and always approved, with the grants
    /// that would spare the questions
    Digest,
    /// Approve calls of a tool before they are made. Not those of who grants, and none that are
    /// pending
    Grant(Grant),
    /// List the grants that have not expired; `void` are those for another definition of the tool
    Grants,
    /// End a grant
    Revoke(WhichGrant),
}

#[derive(Debug, Args)]
pub(crate) struct WhichRequest {
    /// The id of the request, or how it begins: 4 digits or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct WhichGrant {
    /// The id of the grant, or how it begins: 4 digits or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// The tool
    #[arg(value_name = "SET.TOOL")]
    pub(crate) tool: String,
    /// Only calls whose arguments meet these conditions, as `when` of a rule in a config has them,
    /// in JSON: '{"env": "test", "id": {"matches": "t-.*"}}'. A destructive tool needs some
    #[arg(long, value_name = "JSON", value_parser = parse_json)]
    pub(crate) when: Option<Value>,
    /// Only calls of this principal (default: of each)
    #[arg(long = "for", value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// How many calls: a number, or `unlimited`
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = parse_uses)]
    pub(crate) uses: Value,
    /// How long it holds, up to 30 days
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    pub(crate) until: Duration,
}

fn parse_json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

fn parse_uses(text: &str) -> Result<Value, String> {
    match text.parse::<u32>() {
        Ok(count) if count > 0 => Ok(count.into()),
        _ if text == "unlimited" => Ok(text.into()),
        _ => Err("expected a number above 0, or `unlimited`".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The ids of the requests, or how they begin: 4 digits or more
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// The reason that the caller gets with a denial
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}
