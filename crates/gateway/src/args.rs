//! The command line.

mod audit;
mod breakers;
mod cache;
mod limits;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use tollgate::core::lint::{Code, Severity};
use tollgate::{Annotations, Profile, RuleSet, ServerId, Trust};

use crate::config::parse_listen;

mod recording;
mod replay;
mod servers;

pub(crate) use audit::{Audit, AuditCommand, Show, Verify};
pub(crate) use breakers::{Breakers, BreakersCommand, WhichBreaker};
pub(crate) use cache::{Cache, CacheCommand, PurgeArgs, TrustArgs};
pub(crate) use limits::Limits;
pub(crate) use recording::{Hints, Recording, ReplayCalls};
pub(crate) use replay::Replay;
pub(crate) use servers::{Events, Servers, ServersCommand};

/// An MCP gateway that reads what tools say about themselves, and lets that decide caching,
/// repeats, routing and confirmation of every call.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    arg_required_else_help = true,
    after_help = "\
Try it, with nothing else installed:
  tollgate demo                             a tour in a few seconds
  tollgate serve                            a gateway over an embedded sample
  tollgate run -- tollgate sample           wrap one MCP server, over stdio

Use it:
  tollgate run -- npx -y @modelcontextprotocol/server-filesystem /data
  tollgate serve --config tollgate.toml
  tollgate explain files__write_file --config tollgate.toml
  tollgate lint -- node my-server.js"
)]
pub(crate) struct Args {
    /// Log level on standard error: off, error, warn, info, debug, trace, or TARGET=LEVEL,...
    /// (default: info for `serve`, error for the rest)
    #[arg(long, global = true, value_name = "LEVEL", env = "TOLLGATE_LOG")]
    pub(crate) log: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the gateway over HTTP: /mcp, /healthz, /readyz, /metrics
    Serve(Serve),
    /// Wrap one MCP server: same tools, same names, with the stack in between
    Run(Run),
    /// Say what is made of tools, as JSON lines in and out
    Annotate(Annotate),
    /// Check the hints and names of a server's tools, for its author and for CI
    Lint(Lint),
    /// Call one tool, and say what became of the call
    Call(Call),
    /// List the tools and what is made of each
    Tools(Tools),
    /// Say what would happen to a call, or to a tool's calls, and why
    Explain(Explain),
    /// Show what the cache of a running gateway did, or empty it
    Cache(Cache),
    /// Show the breakers of a running gateway, or hold one open or closed
    Breakers(Breakers),
    /// Show the limits of a running gateway: rates, places, budgets of repeats, what was refused
    Limits(Limits),
    /// Show the servers of a running gateway, drain one, or change what it weighs
    Servers(Servers),
    /// Follow which server of a running gateway gets which call, and why
    Events(Events),
    /// Read audit logs back: whether they are whole, and what they say
    Audit(Audit),
    /// Show what the stack does, and what it saves, on the embedded sample
    Demo(Demo),
    /// Say how the cache does on recorded traffic, next to other policies
    Replay(Replay),
    /// Serve the sample MCP server itself, without the stack
    Sample(Sample),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --config an embedded sample is served: one replica set of two MCP servers.

Examples:
  tollgate serve
  tollgate serve --config tollgate.toml --check
  tollgate serve --config tollgate.toml --http 127.0.0.1:8080
  tollgate serve --config tollgate.toml --record calls.jsonl.gz

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
      \"command\": \"tollgate\",
      \"args\": [\"run\", \"--\", \"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/data\"] } } }

Standard output carries the protocol only; logs go to standard error (--log info).
The server inherits the environment. Tools are passed on; prompts and resources are not.

Examples:
  tollgate run -- tollgate sample
  tollgate run --http 7421 -- mcp-server-time --local-timezone UTC")]
pub(crate) struct Run {
    /// Serve over HTTP here instead of stdio
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) http: Option<SocketAddr>,
    /// Put NAME__ before the names of the tools (default: names stay as they are)
    #[arg(long, value_name = "NAME")]
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// The server to wrap
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Where the tools are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct From {
    /// A running gateway, or any other MCP endpoint
    #[arg(long, default_value = "http://127.0.0.1:7420/mcp")]
    pub(crate) url: String,
    /// Start a stack of one's own with this config file instead
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,
    /// Start a stack of one's own around this MCP server instead
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "config"])]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The result goes to standard output. Standard error gets one line: effect, server, cache, attempts,
time. The exit code is 1 if the tool reports an error or the call fails.

Examples:
  tollgate call orders__get_order '{\"order_id\": 1}'
  tollgate call get_order '{\"order_id\": 1}' -- tollgate sample
  tollgate call --json files__read_file '{\"path\": \"/data/a\"}' --config tollgate.toml")]
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
    #[command(flatten)]
    pub(crate) from: From,
}

/// Where listed tools are read from.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Listings {
    /// JSON lines, one tool each; or a list of tools, or the answer to `tools/list`
    /// (default, and `-`: standard input)
    #[arg(value_name = "FILE", conflicts_with_all = ["url", "config", "command"])]
    pub(crate) file: Option<PathBuf>,
    /// Ask this MCP endpoint instead
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Ask the servers of this config file instead
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,
    /// Start this MCP server and ask it instead
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "config"])]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Input: {\"name\", \"description\", \"inputSchema\"?, \"annotations\"?, \"server\"?, \"title\"?} a line; other
members are ignored, blank lines skipped. Tools of one server belong together, wherever they stand.

Output, a line for each tool in the order of the input:
  {\"name\", \"server\"?, \"annotations\", \"safetyLevel\", \"plan\", \"problems\"?}
`annotations` is the effective set, `problems` what is wrong with the declared one (a gateway
refuses such a tool if a problem is an error). --explain adds \"evidence\", with source, reason and,
where it was inferred, strength of each hint, and \"warnings\".
What is no tool becomes {\"name\", \"error\"} in its place, and a message on standard error.
With --config the plan is the tool's own; what its rules over arguments make of a call is told by
`tollgate explain`.

Exit code: 0; 1 if a line was no tool or a server did not answer; 2 for a wrong command line.

Examples:
  tollgate annotate tools.jsonl
  tollgate annotate --explain -- npx -y @modelcontextprotocol/server-filesystem /data
  echo '{\"name\": \"deleteUser\"}' | tollgate annotate --profile strict")]
pub(crate) struct Annotate {
    /// The rules that fill gaps: standard or neurolink (default: standard, or what --config says)
    #[arg(long, value_name = "RULES", value_parser = parse_rules)]
    pub(crate) rules: Option<RuleSet>,
    /// The profile that turns hints into plans: standard, strict, neurolink, mcpgate or epd
    /// (default: standard, or what --config says)
    #[arg(long, value_name = "NAME", value_parser = parse_profile)]
    pub(crate) profile: Option<Profile>,
    /// How far declared hints are believed: trusted, standard or untrusted (default: standard, or
    /// what --config says)
    #[arg(long, value_name = "LEVEL", value_parser = parse_trust)]
    pub(crate) trust: Option<Trust>,
    /// Add source and reason of each hint
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) from: Listings,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads what `tollgate annotate` reads. A finding contradicts a declared hint only on strong evidence;
what the author knows better is silenced with --allow. `--codes` lists all codes and what they mean.
With --config the servers are looked at as they are: what the config says of their tools is not.

--json prints {\"code\", \"severity\", \"server\"?, \"tool\", \"index\", \"field\", \"message\", \"advice\"} for
each finding, and at last {\"summary\": {\"tools\", \"errors\", \"warnings\", \"infos\", \"denied\"}}.

Exit code: 0 without findings at or above the denied level; 1 with some; 2 if the command line is
wrong, or the input cannot be read or has no tools.

Examples:
  tollgate lint -- node my-server.js
  tollgate lint --strict tools.json
  tollgate lint --deny info --allow missing-open-world-hint --json tools.jsonl")]
pub(crate) struct Lint {
    /// Print one JSON object per finding, and one for the sum; or one per code
    #[arg(long)]
    pub(crate) json: bool,
    /// The least severity that fails: error, warning or info
    #[arg(long, value_name = "LEVEL", default_value = "error", value_parser = parse_severity)]
    pub(crate) deny: Severity,
    /// The same as --deny warning
    #[arg(long, conflicts_with = "deny")]
    pub(crate) strict: bool,
    /// Silence a code (repeatable)
    #[arg(long, value_name = "CODE")]
    pub(crate) allow: Vec<Code>,
    /// List the codes, and what they mean
    #[arg(long)]
    pub(crate) codes: bool,
    #[command(flatten)]
    pub(crate) from: Listings,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollgate tools
  tollgate tools --json -- tollgate sample
  tollgate tools --by-safety --config tollgate.toml
  tollgate tools --only readOnlyHint=true --only openWorldHint=false")]
pub(crate) struct Tools {
    /// Print one JSON object per tool
    #[arg(long)]
    pub(crate) json: bool,
    /// Put the tools in groups: read-only, mutating, destructive
    #[arg(long)]
    pub(crate) by_safety: bool,
    /// Only tools with this effective hint (`--only` again: and with that one)
    #[arg(long, value_name = "FIELD=VALUE", value_parser = Annotations::from_assignment)]
    pub(crate) only: Vec<Annotations>,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
With JSON: what would happen to this call, and why. Without: to the tool's calls in general, with
the rules over its arguments. Nothing is sent.

Examples:
  tollgate explain orders__delete_order
  tollgate explain orders__get_order '{\"order_id\": 1}'
  tollgate explain delete_order -- tollgate sample")]
pub(crate) struct Explain {
    /// The tool: as clients see it, or SET.TOOL
    pub(crate) tool: String,
    /// The arguments of the call to explain, as a JSON object
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollgate demo                         a tour of the stack
  tollgate demo --chaos                 who executes what twice when servers fail
  tollgate demo --chaos --calls 1000000 --seed 7")]
pub(crate) struct Demo {
    /// Call servers that fail at every point of a call instead, with the stack and with naive retries
    #[arg(long)]
    pub(crate) chaos: bool,
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

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollgate sample                       over stdio, for a client to start
  tollgate sample --http 7422           over HTTP
  tollgate run -- tollgate sample       behind the stack")]
pub(crate) struct Sample {
    /// Serve over HTTP here instead of stdio
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) http: Option<SocketAddr>,
}

fn parse_rules(name: &str) -> Result<RuleSet, String> {
    RuleSet::by_name(name).ok_or_else(|| "expected standard or neurolink".into())
}

fn parse_profile(name: &str) -> Result<Profile, String> {
    Profile::by_name(name).ok_or_else(|| format!("expected one of {}", Profile::NAMES.join(", ")))
}

fn parse_trust(name: &str) -> Result<Trust, String> {
    match name {
        "trusted" => Ok(Trust::Trusted),
        "standard" => Ok(Trust::Standard),
        "untrusted" => Ok(Trust::Untrusted),
        _ => Err("expected trusted, standard or untrusted".into()),
    }
}

fn parse_severity(name: &str) -> Result<Severity, String> {
    [Severity::Error, Severity::Warning, Severity::Info]
        .into_iter()
        .find(|severity| severity.as_str() == name)
        .ok_or_else(|| "expected error, warning or info".into())
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
