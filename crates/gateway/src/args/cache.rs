//! The command line of `callward cache`.

use clap::Subcommand;
use serde::Serialize;

use super::Gateway;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One line for each tool that was called since the gateway started, and one for all. `hit rate` is the
share of look-ups that were answered without a server; `saved` the time those would have taken.

--json prints one object: {\"total\": {...}, \"tools\": [...]}, as GET /api/cache answers.

Examples:
  callward cache
  callward cache --json --url http://127.0.0.1:8081
  callward cache purge --tool orders__get_order")]
pub(crate) struct Cache {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// What was read from this server, and from those that stand in for it
    #[arg(long, value_name = "ID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// The results of tools with this tag, and what was read from scopes of this name
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// What is this principal's alone
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
}
