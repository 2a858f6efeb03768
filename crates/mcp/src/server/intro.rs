//! The introduction of the server, in both eras.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Introduction;
use crate::wire::{Era, KNOWN_VERSIONS, LATEST_LEGACY, meta};

/// Returns the member `serverInfo`.
pub(super) fn implementation(info: &Introduction) -> Value {
    let mut server = json!({"name": info.name, "version": info.version});
    if let Some(title) = &info.title {
        server["title"] = json!(title);
    }
    server
}

/// Writes the result of `initialize`. Legacy clients see tools only, so that they do not ask for
/// other lists.
pub(super) fn initialize(info: &Introduction, asked: &str) -> Bytes {
    let result = json!({
        "protocolVersion": negotiate(asked),
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": implementation(info),
    });
    with_instructions(result, info)
}

/// Writes the result of `server/discover`. The modern revision requires a server to declare each
/// list that it answers: those of prompts and resources are empty.
pub(super) fn discover(info: &Introduction) -> Bytes {
    let mut result = modern(info);
    result["supportedVersions"] = json!(KNOWN_VERSIONS);
    result["capabilities"] = json!({
        "tools": {"listChanged": true},
        "prompts": {},
        "resources": {},
    });
    with_instructions(result, info)
}

/// Writes the modern result of a list that is empty.
pub(super) fn empty(info: &Introduction, what: &str) -> Bytes {
    let mut result = modern(info);
    result[what] = json!([]);
    result.to_string().into()
}

/// Returns what every modern result has. A restart may change it, so clients may not keep it.
fn modern(info: &Introduction) -> Value {
    json!({
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {(meta::SERVER_INFO): implementation(info)},
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_legacy_revision_is_echoed_and_anything_else_gets_the_newest() {
        for (asked, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(negotiate(asked), answered, "{asked}");
        }
    }

    #[test]
    fn legacy_clients_are_told_of_tools_only() {
        let info = Introduction::new("gate", "1.2.3").with_title("Gate");
        let written = initialize(&info, "2025-06-18");
        assert_eq!(
            serde_json::from_slice::<Value>(&written).unwrap(),
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "gate", "title": "Gate", "version": "1.2.3"},
            })
        );
    }

    #[test]
    fn modern_clients_are_told_of_every_list_that_is_answered() {
        let written = discover(&Introduction::new("gate", "1"));
        let read: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(
            read["capabilities"],
            json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}})
        );
    }
}
