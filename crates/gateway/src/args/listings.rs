//! The command lines of `callward annotate` and `callward lint`, which read listed tools.

use std::path::PathBuf;

use callward::core::lint::{Code, Severity};
use callward::{Profile, RuleSet, Trust};
use serde::de::value::Error as Unknown;
use serde::de::{DeserializeOwned, IntoDeserializer};

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
What is not a tool becomes {\"name\", \"error\"} in its place, and a message on standard error.
The plan follows from the hints alone: a gateway may learn how long results are served, and
`callward explain` shows what rules over arguments make of a call.

Exit code: 0; 1 if a line was not a tool or a server did not answer; 2 for a wrong command line.

Examples:
  callward annotate tools.jsonl
  callward annotate --explain -- npx -y @modelcontextprotocol/server-filesystem /data
  echo '{\"name\": \"deleteUser\"}' | callward annotate --profile strict")]
pub(crate) struct Annotate {
    /// The rules that fill gaps: standard or neurolink (default: standard, or what --config says)
    #[arg(long, value_name = "RULES", value_parser = parse_word::<RuleSet>)]
    pub(crate) rules: Option<RuleSet>,
    /// The profile that turns hints into plans: standard, strict, neurolink, mcpgate or epd
    /// (default: standard, or what --config says)
    #[arg(long, value_name = "NAME", value_parser = parse_profile)]
    pub(crate) profile: Option<Profile>,
    /// How far declared hints are believed: trusted, standard or untrusted (default: standard, or
    /// what --config says)
    #[arg(long, value_name = "LEVEL", value_parser = parse_word::<Trust>)]
    pub(crate) trust: Option<Trust>,
    /// Add source and reason of each hint
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) from: Listings,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads what `callward annotate` reads. A finding contradicts a declared hint only on strong evidence;
what the author knows better is silenced with --allow. `--codes` lists all codes and what they mean.
With --config the servers are looked at as they are: what the config says of their tools is not.

--json prints {\"code\", \"severity\", \"server\"?, \"tool\", \"index\", \"field\", \"message\", \"advice\"} for
each finding, and at last {\"summary\": {\"tools\", \"errors\", \"warnings\", \"infos\", \"denied\"}}.

Exit code: 0 without findings at or above the denied level; 1 with some; 2 if the command line is
wrong, or the input cannot be read or has no tools.

Examples:
  callward lint -- node my-server.js
  callward lint --strict tools.json
  callward lint --deny info --allow missing-open-world-hint --json tools.jsonl")]
pub(crate) struct Lint {
    /// Print one JSON object per finding, and one for the sum; or one per code
    #[arg(long)]
    pub(crate) json: bool,
    /// The least severity that fails: error, warning or info
    #[arg(long, value_name = "LEVEL", default_value = "error", value_parser = parse_word::<Severity>)]
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

/// Reads a word as a config has it.
fn parse_word<T: DeserializeOwned>(word: &str) -> Result<T, Unknown> {
    T::deserialize(word.into_deserializer())
}

fn parse_profile(name: &str) -> Result<Profile, String> {
    Profile::by_name(name).ok_or_else(|| format!("expected one of {}", Profile::NAMES.join(", ")))
}
