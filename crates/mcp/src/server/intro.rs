//! The introduction of the server, in both eras.

use bytes::Bytes;
use callward_core::{List, Method};
use serde_json::{Map, Value, json};

use super::Introduction;
use crate::wire::{Era, KNOWN_VERSIONS, LATEST_LEGACY, meta, tasks};

/// Writes the result of `initialize`.
pub(super) fn initialize(info: &Introduction, agreed: &str) -> Bytes {
    let result = json!({
        "protocolVersion": agreed,
        "capabilities": capabilities(info),
        "serverInfo": implementation(info),
    });
    with_instructions(result, info)
}

/// Writes the result of `server/discover`. The modern revision requires a server to declare each
/// list that it answers: those of prompts and resources may be empty.
pub(super) fn discover(info: &Introduction) -> Bytes {
    let mut result = result(Era::Modern, info, Map::new());
    result["supportedVersions"] = json!(KNOWN_VERSIONS);
    let mut capabilities = capabilities(info);
    if info.methods.iter().any(|method| method.is_of_task()) {
        capabilities["extensions"] = json!({tasks::TASKS: {}});
    }
    for list in List::ALL {
        if capabilities.get(list.as_str()).is_none() {
            capabilities[list.as_str()] = json!({});
        }
    }
    result["capabilities"] = capabilities;
    with_instructions(result, info)
}

/// Writes a list that is empty.
pub(super) fn empty(era: Era, info: &Introduction, method: Method) -> Bytes {
    let mut result = result(era, info, Map::new());
    result[method.result_member().unwrap_or_default()] = json!([]);
    result.to_string().into()
}

/// Declares tools, and what else is answered: legacy clients ask for no more than that.
fn capabilities(info: &Introduction) -> Value {
    let mut capabilities = json!({"tools": {"listChanged": true}});
    for method in &info.methods {
        match method.list() {
            Some(list) => capabilities[list.as_str()] = json!({"listChanged": true}),
            None if method.is_of_task() => {}
            None => capabilities["completions"] = json!({}),
        }
    }
    if info.subscribe && capabilities.get("resources").is_some() {
        capabilities["resources"]["subscribe"] = true.into();
    }
    if info.logging {
        capabilities["logging"] = json!({});
    }
    capabilities
}

/// Returns what every result of the era has, with this `_meta` beside our own. A restart may change
/// a modern result, and what a client may see depends on who it is: so it may not be kept.
pub(super) fn result(era: Era, info: &Introduction, mut meta: Map<String, Value>) -> Value {
    let mut result = json!({});
    if era == Era::Modern {
        meta.insert(meta::SERVER_INFO.to_owned(), implementation(info));
        result = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    }
    if !meta.is_empty() {
        result["_meta"] = meta.into();
    }
    result
}

fn implementation(info: &Introduction) -> Value {
    let mut server = json!({"name": info.name, "version": info.version});
    if let Some(title) = &info.title {
        server["title"] = json!(title);
    }
    server
}

fn with_instructions(mut result: Value, info: &Introduction) -> Bytes {
    if let Some(instructions) = &info.instructions {
        result["instructions"] = json!(instructions);
    }
    result.to_string().into()
}

/// Answers the revision asked for in `initialize`: the same if it is known and has a handshake,
/// else the newest that has one.
pub(super) fn negotiate(asked: &str) -> &'static str {
    KNOWN_VERSIONS
        .into_iter()
        .find(|known| *known == asked && Era::of(known) == Era::Legacy)
        .unwrap_or(LATEST_LEGACY)
}
