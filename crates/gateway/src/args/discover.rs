//! The command line of `callward discover`.

use callward::ServerId;

use super::From;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
All servers are listed at once, each within its own time (`discovery.timeout`), and shown as they
end. Of each it shows how many tools are listed, added, changed and removed; those that are refused
or held for review, with every reason; and what its author or operator should look at: findings of
`callward lint`, missing and long descriptions, and other versions of the software in one set. With
--config or a command the servers are started and listed once, their start within the same time; the
time that is shown is that of the listing.

--json prints one object per server, as POST /api/servers/ID/discover answers.

Exit code: 0; 1 if a server could not be listed.

Examples:
  callward discover
  callward discover --server orders-1 --server orders-2
  callward discover --json -- callward sample")]
pub(crate) struct Discover {
    /// List this server only (repeatable)
    #[arg(long, value_name = "ID")]
    pub(crate) server: Vec<ServerId>,
    /// Print one JSON object per server
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}
