//! The arguments of `callward review`.

use clap::{Args, Subcommand};

use super::Gateway;

/// Show changed tools that wait for approval, and suggestions from calls; approve or accept them
#[derive(Debug, Args)]
#[command(after_help = "\
What a server lists first is approved. A tool of a server that is not `trusted` is held if its hints
get looser or its title, description or schemas change, and is neither listed nor called until it is
approved here, or its server lists the approved definition again.

Calls suggest a longer timeout for a tool that comes close to its own. It applies once accepted, as
your own hint would, until the tool's definition changes. Hints in the config come first.

A digest is of one run: the next one has others. `callward run` over stdio cannot be asked: with its
COMMAND in the same folder, or its --config, its server is started to see what it lists; what is
approved is shown again, and counts from the next start of `run` on. Where it has a --prefix, or
both, approve beside `callward run --http`.

Examples:
  callward review                                what is held or suggested, and why
  callward review approve shop.get_order
  callward review approve shop.get_order@3f9a12  only if its digest begins so
  callward review approve --all
  callward review accept 5e81b02c97d4            a suggestion
  callward review approve --all -- npx -y server  what `callward run -- npx -y server` holds")]
pub(crate) struct Review {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    #[command(subcommand)]
    pub(crate) command: Option<ReviewCommand>,
    /// The server that `callward run` wraps
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "config"])]
    pub(crate) wrapped: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// Offer changed tools as they are listed now; what was cached or granted before is void
    Approve(Approve),
    /// Apply suggestions
    Accept {
        /// The suggestions, as `callward review` lists them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The tools, as clients see them or as SET.TOOL, with the digest that was seen if it must not
    /// be another one
    #[arg(value_name = "TOOL[@DIGEST]", required_unless_present = "all")]
    pub(crate) tools: Vec<String>,
    /// All that are held
    #[arg(long, conflicts_with = "tools")]
    pub(crate) all: bool,
    /// The server that `callward run` wraps
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "config"])]
    pub(crate) wrapped: Vec<String>,
}
