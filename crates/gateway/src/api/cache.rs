//! What the cache did and keeps, and purging it.

use callward::registry::Catalogue;
use callward::{Principal, ReplicaSetId, Stack, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::servers::known;
use crate::{similar, view};

/// Returns what the cache did since the gateway started, and what it keeps now.
pub(super) fn all(stack: &Stack) -> Value {
    let catalogue = stack.catalogue();
    let stats = stack.cache_stats();
    let mut total = json!(stats);
    total["hit_rate"] = json!(stats.counts.hit_rate());
    let learned = stack.learned_lifetimes();
    let tools = stack.cache().tools();
    let tools = tools.iter().map(|stats| {
        let seen = learned.get(&(stats.set.clone(), stats.tool.clone()));
        let mut tool = json!(stats);
        tool["hit_rate"] = json!(stats.counts.hit_rate());
        tool["name"] = json!(client_name(&catalogue, &stats.set, &stats.tool));
        tool["evidence"] = view::evidence(seen);
        if tool["evidence"].is_object() {
            tool["evidence"]["tool"] = json!(stats.tool);
        }
        tool
    });
    json!({
        "total": total,
        "tools": tools.collect::<Vec<_>>(),
        // state that writes which ended may still change: nothing of it is served from the cache
        "unsettled": stack.cache().unsettled(),
    })
}

/// Returns the name that clients call a tool by; `None` if it is not offered any more.
fn client_name(catalogue: &Catalogue, set: &ReplicaSetId, tool: &ToolName) -> Option<String> {
    let mut entries = catalogue.entries().iter();
    let offered = entries.find(|entry| entry.tool().set() == set && entry.tool().name() == tool);
    offered.map(|entry| entry.client_name().to_owned())
}

/// What to purge from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purge {
    All(bool),
    /// The results of one principal alone.
    Principal(String),
    /// The results read from the replica set of this server.
    Server(String),
    /// The results of tools with this tag, and those read from scopes of this name.
    Tag(String),
    /// The results of this tool, by the name clients see.
    Tool(String),
}

pub(super) const PURGE: &str =
    "an object with exactly one of `all`, `principal`, `server`, `tag`, `tool`";

/// Purges a part of the cache that exists.
pub(super) fn purge(stack: &Stack, _: &str, what: &Purge) -> Result<Value, String> {
    let cache = stack.cache();
    let mut set = None;
    match what {
        Purge::All(true) => cache.purge_all(),
        Purge::All(false) => return Err("`all` empties the cache only if it is `true`".into()),
        Purge::Principal(principal) => cache.purge_principal(&Principal::new(principal.as_str())),
        Purge::Server(id) => {
            let server = known(stack, id)?;
            cache.purge_set(&server.set);
            set = Some(server.set);
        }
        Purge::Tag(tag) => cache.purge_tag(tag),
        Purge::Tool(name) => {
            let call = stack.prepare(name, "").map_err(|error| {
                let catalogue = stack.catalogue();
                let known = catalogue.entries().iter().map(|entry| entry.client_name());
                match similar::near(name, known) {
                    Some(hint) => format!("no tool {name:?}: {hint}"),
                    None => error.message().to_owned(),
                }
            })?;
            let tool = call.tool();
            cache.purge_tool(tool.set(), tool.name());
            set = Some(tool.set().clone());
        }
    }
    Ok(json!({ "purged": what, "set": set.as_ref().map(ReplicaSetId::as_str) }))
}
