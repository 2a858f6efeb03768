//! How the server introduces itself, in both eras.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use super::Introduction;
use crate::wire::{Era, KNOWN_VERSIONS, LATEST_LEGACY, meta};

/// The member `serverInfo`.
#[derive(Serialize)]
pub(super) struct Implementation<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    version: &'a str,
}

impl<'a> Implementation<'a> {
    pub(super) fn of(info: &'a Introduction) -> Self {
        Self {
            name: &info.name,
            title: info.title.as_deref(),
            version: &info.version,
        }
    }
}

/// What is offered: tools, and notifications of their changes.
///
/// Lists of prompts and resources are answered, and are empty: many clients ask for them whatever
/// is declared. The modern revision requires a server that answers them to declare so; a legacy
/// client sees tools only, so that it does not ask for others.
#[derive(Serialize)]
struct Capabilities {
    tools: Tools,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Nothing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Nothing>,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools {
    list_changed: bool,
}

impl Capabilities {
    const fn of(era: Era) -> Self {
        let (prompts, resources) = match era {
            Era::Legacy => (None, None),
            Era::Modern => (Some(Nothing {}), Some(Nothing {})),
        };
        Self {
            tools: Tools { list_changed: true },
            prompts,
            resources,
        }
    }
}

/// Writes the result of `initialize`.
pub(super) fn initialize(info: &Introduction, asked: &str) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize<'a> {
        protocol_version: &'static str,
        capabilities: Capabilities,
        server_info: Implementation<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
    }
    json(&Initialize {
        protocol_version: negotiate(asked),
        capabilities: Capabilities::of(Era::Legacy),
        server_info: Implementation::of(info),
        instructions: info.instructions.as_deref(),
    })
}

/// Writes the result of `server/discover`. It never goes stale while the process lives, but a
/// restart may change it, so clients are given no time to keep it.
pub(super) fn discover(info: &Introduction) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Discover<'a> {
        result_type: &'static str,
        supported_versions: [&'static str; KNOWN_VERSIONS.len()],
        capabilities: Capabilities,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
        ttl_ms: u64,
        cache_scope: &'static str,
        #[serde(rename = "_meta")]
        meta: BTreeMap<&'static str, Implementation<'a>>,
    }
    json(&Discover {
        result_type: "complete",
        supported_versions: KNOWN_VERSIONS,
        capabilities: Capabilities::of(Era::Modern),
        instructions: info.instructions.as_deref(),
        ttl_ms: 0,
        cache_scope: "private",
        meta: BTreeMap::from([(meta::SERVER_INFO, Implementation::of(info))]),
    })
}

/// Writes the modern result of a list that is empty.
pub(super) fn empty(info: &Introduction, what: &str) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Empty<'a> {
        result_type: &'static str,
        #[serde(flatten)]
        list: BTreeMap<&'a str, [(); 0]>,
        ttl_ms: u64,
        cache_scope: &'static str,
        #[serde(rename = "_meta")]
        meta: BTreeMap<&'static str, Implementation<'a>>,
    }
    json(&Empty {
        result_type: "complete",
        list: BTreeMap::from([(what, [])]),
        ttl_ms: 0,
        cache_scope: "private",
        meta: BTreeMap::from([(meta::SERVER_INFO, Implementation::of(info))]),
    })
}

/// Answers the revision asked for in `initialize`: the same if it is known and has a handshake,
/// else the newest that has one.
pub(super) fn negotiate(asked: &str) -> &'static str {
    KNOWN_VERSIONS
        .into_iter()
        .find(|known| *known == asked && Era::of(known) == Era::Legacy)
        .unwrap_or(LATEST_LEGACY)
}

/// Writes a value that cannot fail to be written: structs of texts and numbers.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"{}"), Bytes::from)
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
            std::str::from_utf8(&written).unwrap(),
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"gate","title":"Gate","version":"1.2.3"}}"#
        );
    }

    #[test]
    fn modern_clients_are_told_of_every_list_that_is_answered() {
        let written = discover(&Introduction::new("gate", "1"));
        let read: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(
            read["capabilities"],
            serde_json::json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}})
        );
    }
}
