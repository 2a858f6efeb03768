//! The command line.

mod approvals;
mod audit;
mod discover;
mod keys;
mod listings;
mod relayed;
mod replay;
mod review;
mod running;
mod search;
mod toolsets;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use callward::ServerId;
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::config::{parse_duration, parse_listen};

pub(crate) use approvals::{Approvals, ApprovalsCommand, Decide, Grant};
pub(crate) use audit::{Audit, AuditCommand, Show, Verify};
pub(crate) use discover::Discover;
pub(crate) use keys::{CreateKey, Keys, KeysCommand};
pub(crate) use listings::{Annotate, Lint, Listings};
pub(crate) use relayed::{Complete, Prompts, Read, Resources};
pub(crate) use replay::{Recording, Replay, ReplayCalls};
pub(crate) use review::{Approve, Review, ReviewCommand};
pub(crate) use running::{
    Breakers, BreakersCommand, Cache, CacheCommand, Gateway, Servers, ServersCommand,
};
pub(crate) use search::Tools;
pub(crate) use toolsets::{Notes, NotesCommand, ToolsetFile, Toolsets, ToolsetsCommand};

/// An MCP gateway that reads each tool's annotations and by them decides caching, retries, routing
/// and confirmation of every call.
#[derive(Debug, Parser)]
#[command(
    name = "callward",
    version,
    arg_required_else_help = true,
    after_help = "\
Try it, with nothing else installed:
  callward demo                             a tour in a few seconds
  callward serve                            a gateway over an embedded sample
  callward run -- callward sample           wrap one MCP server, over stdio

Use it:
  callward run -- npx -y @modelcontextprotocol/server-filesystem /data
  callward serve --config callward.toml
  callward explain files__write_file --config callward.toml
  callward lint -- node my-server.js"
)]
pub(crate) struct Args {
    /// Log level on standard error: off, error, warn, info, debug, trace, or TARGET=LEVEL,...
    /// (default: info for `serve`, error for the rest)
    #[arg(long, global = true, value_name = "LEVEL", env = "CALLWARD_LOG")]
    pub(crate) log: Option<String>,
    /// Form of log lines
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "CALLWARD_LOG_FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,
    /// The folder for state that outlives one run (default: $XDG_STATE_HOME/callward, else
    /// ~/.local/state/callward)
    #[arg(long, global = true, value_name = "DIR", env = "CALLWARD_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the gateway over HTTP
    Serve(Serve),
    /// Wrap one MCP server over stdio: same tools, same names
    Run(Run),
    /// Derive hints and plans from a list of tools, as JSON lines
    Annotate(Annotate),
    /// Check the hints and names of a server's tools, for its author and for CI
    Lint(Lint),
    /// List the tools of servers now, and show what is refused, held or doubtful
    Discover(Discover),
    /// Call one tool, and show how the call went
    Call(Call),
    /// List the tools with their plans
    Tools(Tools),
    /// List the prompts, or fill in one
    Prompts(Prompts),
    /// List the resources, and the templates of their URIs
    Resources(Resources),
    /// Read a resource
    Read(Read),
    /// Complete an argument of a prompt or of a template
    Complete(Complete),
    /// Show what would happen to a call of a tool, and why
    Explain(Explain),
    /// Show the cache of a running gateway, or purge it
    Cache(Cache),
    /// Show the breakers of a running gateway, or hold one open or closed
    Breakers(Breakers),
    /// Show the limits of a running gateway: rates, permits, retry budgets, refusals
    #[command(after_help = running::LIMITS_HELP)]
    Limits(Gateway),
    /// Show the servers of a running gateway, drain one, or change its weight
    Servers(Servers),
    /// Follow the routing decisions of a running gateway
    #[command(after_help = running::EVENTS_HELP)]
    Events(Gateway),
    /// Show the calls that wait for an operator, and decide them
    Approvals(Approvals),
    Review(Review),
    /// List, build and delete toolsets
    Toolsets(Toolsets),
    /// List, edit and remove the notes about tools
    Notes(Notes),
    /// Verify audit logs, or show their records
    Audit(Audit),
    /// Create, list and revoke the API keys of clients
    Keys(Keys),
    /// Show what the gateway does, and what it saves, on the embedded sample
    Demo(Demo),
    /// Replay recorded traffic through the cache and other policies
    Replay(Replay),
    /// Serve the sample MCP server itself, without the gateway
    #[command(after_help = "\
Examples:
  callward sample                       over stdio, for a client to start
  callward sample --http 7422           over HTTP
  callward run -- callward sample       behind the stack")]
    Sample {
        /// Serve over HTTP here instead of stdio
        #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
        http: Option<SocketAddr>,
    },
    /// Print the completion script of a shell
    #[command(after_help = "\
Example:
  callward completions bash > ~/.local/share/bash-completion/completions/callward")]
    Completions {
        shell: Shell,
    },
    /// Write the man pages
    Man {
        /// The folder to write to, one page for each command
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --config the file `callward.toml` in the current folder is used, or if there is none, an
embedded sample is served: one replica set of two servers.

Clients are served at /mcp of `http.listen` (127.0.0.1:7420), with /healthz and /readyz. The other
commands ask at `admin.listen` (127.0.0.1:7421), where /metrics is, too.

Examples:
  callward serve
  callward serve --config callward.toml --check
  callward serve --config callward.toml --http 127.0.0.1:8080
  callward serve --config callward.toml --record calls.jsonl.gz

Ctrl-C or SIGTERM lets calls in flight end (10 s, or `http.drain`); a second one does not.")]
pub(crate) struct Serve {
    /// The config file; see docs/config.md
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check the config, print what would run, and end
    #[arg(long)]
    pub(crate) check: bool,
    /// Listen here instead (an address with a port, or a port on loopback)
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) http: Option<SocketAddr>,
    /// Say where it listens, or what was checked, as one JSON line on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) recording: Recording,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Put it in front of a server in a desktop client's configuration:
  { \"mcpServers\": { \"files\": {
      \"command\": \"callward\",
      \"args\": [\"run\", \"--\", \"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/data\"] } } }

Standard output carries the protocol only; logs go to standard error (--log info).
Without --ttl or --config only equal calls of different clients within half a second share a result:
other programs may change what the server reads.
The server inherits the environment. What it asks the client is passed on, too.

Examples:
  callward run -- callward sample
  callward run --http 7430 -- mcp-server-time --local-timezone UTC")]
pub(crate) struct Run {
    /// Serve over HTTP here instead of stdio
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) http: Option<SocketAddr>,
    /// Put NAME__ before the names of the tools (default: names stay as they are)
    #[arg(long, value_name = "NAME")]
    pub(crate) prefix: Option<String>,
    /// Settings: a file as for `serve`, with at most one server. COMMAND replaces the server's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Serve results of reads for this long, such as "30s": nothing else changes what the server
    /// reads
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "no_cache")]
    pub(crate) ttl: Option<Duration>,
    /// Keep no result, and share none
    #[arg(long)]
    pub(crate) no_cache: bool,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// The server to wrap
    #[arg(
        last = true,
        required_unless_present = "config",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<String>,
}

/// Where the tools are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct From {
    /// The admin address of a running gateway, or the URL of any other MCP endpoint (default: the
    /// gateway that is running)
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Start a stack of one's own with this config file instead
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,
    /// Start a stack of one's own around this MCP server instead
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "config"])]
    pub(crate) command: Vec<String>,
    /// Whether what is approved there is kept.
    #[arg(skip)]
    pub(crate) keeps: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The result goes to standard output. Standard error gets one line: effect, server, cache, attempts,
time. The exit code is 1 if the tool reports an error or the call fails.

Examples:
  callward call orders__get_order '{\"order_id\": 1}'
  callward call get_order '{\"order_id\": 1}' -- callward sample
  callward call --json files__read_file '{\"path\": \"/data/a\"}' --config callward.toml")]
pub(crate) struct Call {
    /// The tool: as clients see it, or SET.TOOL
    pub(crate) tool: String,
    /// The arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// Send it to this server of the tool's set, and to no other; nothing is cached then
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<ServerId>,
    /// Print the raw result instead of its text
    #[arg(long)]
    pub(crate) json: bool,
    /// Show on standard error everything that was decided about the call
    #[arg(long, short = 'v', visible_alias = "verbose")]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
With JSON: what would happen to this call, and why. Without: to the tool's calls in general, with
the rules over its arguments. Nothing is sent.

Examples:
  callward explain orders__delete_order
  callward explain orders__get_order '{\"order_id\": 1}'
  callward explain orders__delete_order --as ada --role admin
  callward explain delete_order -- callward sample")]
pub(crate) struct Explain {
    /// The tool: as clients see it, or SET.TOOL
    pub(crate) tool: String,
    /// The arguments of the call to explain, as a JSON object
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Explain what the rules of `[[authorize]]` decide for this principal; default: anonymous
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// A role of the principal
    #[arg(long = "role", value_name = "ROLE", requires = "principal")]
    pub(crate) roles: Vec<String>,
    /// A scope that its credential is limited to; without any it is not limited
    #[arg(long = "scope", value_name = "SCOPE", requires = "principal")]
    pub(crate) scopes: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  callward demo                         a tour of the stack
  callward demo --approvals             an agent deletes orders, and an operator decides
  callward demo --chaos                 who executes what twice when servers fail
  callward demo --chaos --calls 1000000 --seed 7")]
pub(crate) struct Demo {
    /// Call servers that fail at every point of a call instead, with the stack and with naive
    /// retries
    #[arg(long)]
    pub(crate) chaos: bool,
    /// Show how calls are approved and denied instead, in 20 seconds
    #[arg(long, conflicts_with = "chaos")]
    pub(crate) approvals: bool,
    /// How many calls to make
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        requires = "chaos",
        value_parser = clap::value_parser!(u64).range(1..=100_000_000)
    )]
    pub(crate) calls: u64,
    /// Where chance begins: the same seed fails the same calls
    #[arg(long, value_name = "N", default_value_t = 1, requires = "chaos")]
    pub(crate) seed: u64,
    /// Print one JSON object per row, and one for the sum
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Args::command().debug_assert();
    }

    #[test]
    fn no_line_of_help_is_broken_by_the_screen() {
        for command in Args::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            for line in help.iter().flat_map(|help| help.lines()) {
                let width = line.chars().count();
                assert!(width <= 100, "{}: {width}: {line}", command.get_name());
            }
        }
    }
}
