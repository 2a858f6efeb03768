//! The arguments of `tollgate replay`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Replay the keys of this file: one key a line, and its size in bytes after it if it has one
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}
