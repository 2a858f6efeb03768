//! The arguments of `callward keys`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::config::parse_duration;

/// Create, list and revoke the API keys of clients
#[derive(Debug, Args)]
#[command(after_help = "\
The keys are in the file that `auth.keys` of the config names, by default `keys.json` in the state
directory. A gateway that runs sees a change within a second or so.

Examples:
  KEY=$(callward keys create ci --role dev --expires 90d)
  callward keys create laptop --scope tools:read
  callward keys list
  callward keys revoke ci")]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
    /// The config file of the gateway (default: `callward.toml` in the current folder, if it is
    /// there)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON object for each key
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key, and print it: this once, as only its hash is stored
    Create(CreateKey),
    /// List the keys, also those that are not valid any more
    List,
    /// Revoke a key, at once and for good
    Revoke {
        /// The id of the key, or its name
        #[arg(value_name = "ID_OR_NAME")]
        key: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// A name for people, without spaces
    pub(crate) name: String,
    /// A role of the clients with this key; again for more
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,
    /// A scope that the key is limited to; again for more (default: not limited)
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// How long it is valid, such as "90d" (default: until it is revoked)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) expires: Option<Duration>,
}
