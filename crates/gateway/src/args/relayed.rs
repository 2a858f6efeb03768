//! The command lines of `callward prompts`, `resources`, `read` and `complete`.

use super::From;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without NAME, the prompts of all servers are listed.

Examples:
  callward prompts
  callward prompts notes__summarize '{\"style\": \"brief\"}'
  callward prompts -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct Prompts {
    /// The prompt to fill in
    pub(crate) name: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// Print the raw result
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  callward resources
  callward resources --json -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct Resources {
    /// Print the raw results: the resources, then the templates
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  callward read 'demo://resource/dynamic/text/1#everything'
  callward read demo://resource/dynamic/text/1 -- npx -y @modelcontextprotocol/server-everything")]
pub(crate) struct Read {
    /// The URI, as clients see it
    pub(crate) uri: String,
    /// Print the raw result instead of its text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  callward complete everything__completable-prompt department E
  callward complete 'demo://resource/dynamic/text/{resourceId}#everything' resourceId 1")]
pub(crate) struct Complete {
    /// The prompt, or the template of URIs, as clients see it
    #[arg(value_name = "PROMPT|TEMPLATE")]
    pub(crate) about: String,
    /// The argument
    pub(crate) argument: String,
    /// The beginning of its value
    #[arg(default_value = "")]
    pub(crate) value: String,
    /// Print the raw result
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) from: From,
}
