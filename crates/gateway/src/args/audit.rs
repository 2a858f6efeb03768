//! The arguments of `callward audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Read audit logs back
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  callward audit verify audit.jsonl audit.open-world.jsonl
  callward audit verify audit.jsonl --json
  callward audit show audit.jsonl --tool refund_order --outcome refused
  callward audit show audit.jsonl --last 20 --json")]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Detect changes of logs
    #[command(after_help = "\
The path of a log stands for all its files, including the closed ones (audit.000001.jsonl and so on).
The path of a closed file stands for this file alone.

Exit codes: 0 every log is whole, 1 a log has a fault or cannot be read.")]
    Verify(Verify),
    /// Show the records of a log, oldest first
    Show(Show),
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The logs, or closed files of one
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The file with the key that the logs were made with
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Print one JSON line for each log
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The log
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Only calls of this tool: by its server's name of it, or as SET__NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of this principal, or of the credential with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only calls with this outcome
    #[arg(
        long,
        value_name = "OUTCOME",
        value_parser = ["answered", "tool_error", "failed", "refused", "cancelled"]
    )]
    pub(crate) outcome: Option<String>,
    /// Only records from this time on, or from where it begins: 2026-11-22 or 2026-11-22T14:00
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only the last N of those
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Print the lines as they stand in the log
    #[arg(long)]
    pub(crate) json: bool,
}
