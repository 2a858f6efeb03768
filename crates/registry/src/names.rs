//! The names clients see.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tollgate_core::{FingerprintKey, ReplicaSetId, Tool, ToolName};

/// The longest name with a prefix that clients see: several model APIs take no more.
const LONGEST_NAME: usize = 64;

/// Finds a name for each tool of a set that no tool before it has. One that gets none is not offered.
pub(crate) fn client_names(
    set: &ReplicaSetId,
    prefix: Option<&str>,
    tools: &[Arc<Tool>],
    taken: &mut HashSet<Arc<str>>,
) -> HashMap<ToolName, Arc<str>> {
    let mut names = HashMap::with_capacity(tools.len());
    for tool in tools {
        let own = client_name(prefix, tool);
        // another set without a prefix may have come first
        let name = [own, spare_name(set, tool)]
            .into_iter()
            .find(|name| !taken.contains(name.as_str()));
        if let Some(name) = name.map(Arc::<str>::from) {
            taken.insert(name.clone());
            names.insert(tool.name().clone(), name);
        }
    }
    names
}

/// Names a tool whose own name is taken.
pub(crate) fn spare_name(set: &ReplicaSetId, tool: &Tool) -> String {
    shorten(&format!("{set}__{}", tool.name()))
}

fn client_name(prefix: Option<&str>, tool: &Tool) -> String {
    match prefix {
        Some(prefix) => shorten(&format!("{prefix}__{}", tool.name())),
        // a drop-in for the server itself: its names are not ours to change
        None => tool.name().to_string(),
    }
}

/// Cuts a long name and closes it with its digest, so that it stays unique and stable.
fn shorten(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let digest = FingerprintKey::fixed().bytes(name.as_bytes()).to_string();
    let kept: String = name.chars().take(LONGEST_NAME - 9).collect();
    format!("{kept}_{}", &digest[..8])
}
