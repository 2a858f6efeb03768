//! The arguments about recorded calls: writing them, and `callward replay`.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use callward_replay::{Capacity, Policy};
use clap::ArgGroup;

#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("recording").required(true).args(["keys", "calls"])),
    after_help = "\
Replays recorded traffic through the cache itself, on a clock that stands still, and through
simulators of other policies. No server is asked. docs/replay.md has the formats, the policies, the
columns of the tables, and the members of --json.

--keys reads one key a line, any text without white space; a size in bytes may follow, on each line
or on none. Gzip is unpacked. The table has a row for each capacity: the hit rate of each policy in
per cent, and by how many points ours is above lru, and above belady.

--calls reads one call a line, as `serve --record` writes it. Calls of one layer of a session run at
once. Lines that are not calls are left out, and reported. The table has a row for each policy, ours
first.

Exit code: 0; 1 if a file cannot be read, has a line of another kind, or cannot be written; 2 for a
wrong command line.

Examples:
  callward replay --keys requests.keys.gz
  callward replay --keys requests.keys --capacity 128,512 --capacity 4096
  cut -d' ' -f7 access.log | callward replay --keys - --policy lru,callward --json
  callward serve --config callward.toml --record calls.jsonl.gz
  callward replay --calls calls.jsonl.gz"
)]
pub(crate) struct Replay {
    /// Replay the keys of this file (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// How much may be kept: a number of entries, or of bytes with a unit such as 64MiB; several
    /// with commas, or repeated (default: a series that fits the number of keys)
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "keys")]
    pub(crate) capacity: Vec<Capacity>,
    /// Only these policies; several with commas, or repeated (default: all that mean something)
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "keys")]
    pub(crate) policy: Vec<Policy>,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) recorded: ReplayCalls,
}

/// Whether calls are written down.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Recording {
    /// Append each call to FILE, for `callward replay --calls`: tool, effect, times, and hashes of
    /// arguments and result; compressed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write the arguments as they are, not as hashes
    #[arg(long, requires = "record")]
    pub(crate) record_arguments: bool,
}

/// What is replayed of recorded calls, and how.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Recorded calls")]
pub(crate) struct ReplayCalls {
    /// Replay the calls of this file, compressed or not (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Where the plans come from: recorded (what the file says of each call, else the tool's name)
    /// or inferred (the tool's name alone)
    #[arg(
        long,
        value_name = "SOURCE",
        default_value = "recorded",
        value_parser = ["recorded", "inferred"],
        requires = "calls"
    )]
    pub(crate) hints: String,
    /// Plan by these definitions, in any form that `callward annotate` reads
    #[arg(long, value_name = "FILE", requires = "calls")]
    pub(crate) tools: Option<PathBuf>,
    /// Which state tools read and write, as TOML: a table for each tool, `[get_order]` with `reads
    /// = ["order:{order_id}"]`, `[cancel_order]` with `writes = ["order:{order_id}"]`
    #[arg(long, value_name = "FILE", requires = "calls")]
    pub(crate) scopes: Option<PathBuf>,
    /// Let all sessions of a trace work on the same state, and share results: right where they did.
    /// By default each is a world of its own, unless the file names the state
    #[arg(long, requires = "calls")]
    pub(crate) share_sessions: bool,
    /// How much the bounded policies keep, ours among them
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "calls")]
    pub(crate) max_bytes: ByteSize,
    /// How long a read's result is kept
    #[arg(long, value_name = "TIME", default_value = "300s", requires = "calls", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,
    /// What a call of unknown duration is worth when it is not run
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "calls", value_parser = humantime::parse_duration)]
    pub(crate) assume_duration: Duration,
    /// The time between two calls of a session without recorded times
    #[arg(long, value_name = "TIME", default_value = "0s", requires = "calls", value_parser = humantime::parse_duration)]
    pub(crate) gap: Duration,
}
