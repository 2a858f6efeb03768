//! The command line of `callward tools`.

use callward::Annotations;
use callward::core::InvalidValue;

use super::From;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Words are looked for in names, titles, descriptions and arguments, and the tools with the rarest
words come first. Conditions of different options must all hold; of one that is repeated, any.

--stats shows the calls of a running gateway since it started. `cached` is the share that was
answered without running, and times are of calls that ran.

Examples:
  callward tools
  callward tools open issues --only readOnlyHint=true --limit 10
  callward tools --category version-control --available
  callward tools --sort calls --desc --limit 20
  callward tools --stats
  callward tools --json -- callward sample
  callward tools --by-safety --config callward.toml")]
pub(crate) struct Tools {
    /// Print one JSON object per tool
    #[arg(long)]
    pub(crate) json: bool,
    /// Put the tools in groups: read-only, mutating, destructive
    #[arg(long)]
    pub(crate) by_safety: bool,
    /// Show the calls of tools and servers instead, and how many tools of each kind there are
    #[arg(long, conflicts_with_all = ["by_safety", "Search"])]
    pub(crate) stats: bool,
    #[command(flatten)]
    pub(crate) search: Search,
    #[command(flatten)]
    pub(crate) from: From,
}

/// Which tools, in which order.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// Only tools with one of these words
    #[arg(value_name = "WORD")]
    text: Vec<String>,
    /// Only tools with this part in their names
    #[arg(long, value_name = "PART")]
    name: Option<String>,
    /// Only tools of this server or set (repeatable)
    #[arg(long, value_name = "ID")]
    server: Vec<String>,
    /// Only tools of this category: read, write or delete; version-control, file-system, api, data,
    /// authentication, deployment or general (repeatable)
    #[arg(long, value_name = "WORD")]
    category: Vec<String>,
    /// Only tools with this tag (repeatable)
    #[arg(long)]
    tag: Vec<String>,
    /// Only tools with this effective hint (`--only` again: and with that one)
    #[arg(long, value_name = "FIELD=VALUE", value_parser = hint)]
    only: Vec<(String, String)>,
    /// Only tools of this level: safe, moderate or dangerous
    #[arg(long, value_name = "LEVEL")]
    safety: Option<String>,
    /// Only tools whose calls need confirmation
    #[arg(long)]
    confirm: bool,
    /// Only tools that a server offers which is up
    #[arg(long)]
    available: bool,
    /// By relevance, name, calls, success-rate or duration
    #[arg(long, value_name = "BY")]
    sort: Option<String>,
    /// Reverse the order
    #[arg(long)]
    desc: bool,
    /// At most this many tools
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Skip this many tools
    #[arg(long, value_name = "N")]
    offset: Option<usize>,
}

impl Search {
    /// Returns the fields of the query, as parameters of a URL.
    pub(crate) fn fields(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
        if !self.text.is_empty() {
            add("text", self.text.join(" "));
        }
        let limit = self.limit.map(|limit| limit.to_string());
        let offset = self.offset.map(|offset| offset.to_string());
        for (name, value) in [
            ("name", &self.name),
            ("safety", &self.safety),
            ("sort", &self.sort),
            ("limit", &limit),
            ("offset", &offset),
        ] {
            value.iter().for_each(|value| add(name, value.clone()));
        }
        for (name, values) in [
            ("server", &self.server),
            ("category", &self.category),
            ("tag", &self.tag),
        ] {
            values.iter().for_each(|value| add(name, value.clone()));
        }
        for (name, flag) in [
            ("confirm", self.confirm),
            ("available", self.available),
            ("desc", self.desc),
        ] {
            if flag {
                add(name, true.to_string());
            }
        }
        for (name, value) in &self.only {
            add(name, value.clone());
        }
        fields
    }
}

/// Checks a hint, and splits it.
fn hint(text: &str) -> Result<(String, String), InvalidValue> {
    drop(Annotations::from_assignment(text)?);
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
