//! Which running gateway a command is for.

use std::path::PathBuf;

/// Which running gateway a command is for: by default the only one that is running.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    /// The admin address of the gateway: `http://HOST:PORT` or `unix:/PATH` (default: the gateway
    /// that is running)
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// The gateway that runs with this config file
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,
}
