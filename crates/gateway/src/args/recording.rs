//! The arguments about recorded calls: writing them, and reading them again.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;

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
        requires = "calls"
    )]
    pub(crate) hints: Hints,
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

/// Where plans come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Hints {
    Recorded,
    Inferred,
}
