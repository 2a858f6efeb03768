//! The command line of `callward limits`.

use super::Gateway;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rates: of tools, callers and servers, those that were called upon. `refused` calls were not sent.
Places: how many calls run at once on each server, and on those of its tools that have a limit of
their own. Calls are shed when too many wait, and expire when their time is over while they wait.
Budgets: how many retries the calls of a replica set have paid for, and how many were refused.
Hedges: second attempts at slow reads. Loop guard: failing calls that a session keeps repeating.

--json prints one object, as GET /api/limits answers.

Examples:
  callward limits
  callward limits --url http://127.0.0.1:8081
  callward limits --json")]
pub(crate) struct Limits {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
