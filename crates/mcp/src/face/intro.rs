//! How the server introduces itself, in both eras.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use super::FaceInfo;
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
    pub(super) fn of(info: &'a FaceInfo) -> Self {
        Self {
            name: &info.name,
            title: info.title.as_deref(),
            version: &info.version,
        }
    }
}

/// What is offered: tools, and word of their changes. Nothing else is advertised, and nothing else
/// is answered.
#[derive(Serialize)]
struct Capabilities {
    tools: Tools,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools {
    list_changed: bool,
}

const CAPABILITIES: Capabilities = Capabilities {
    tools: Tools { list_changed: true },
};

/// Writes the result of `initialize`.
pub(super) fn initialize(info: &FaceInfo, asked: &str) -> Bytes {
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
        capabilities: CAPABILITIES,
        server_info: Implementation::of(info),
        instructions: info.instructions.as_deref(),
    })
}

/// Writes the result of `server/discover`. It never goes stale while the process lives, but a
/// restart may change it, so clients are given no time to keep it.
pub(super) fn discover(info: &FaceInfo) -> Bytes {
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
        capabilities: CAPABILITIES,
        instructions: info.instructions.as_deref(),
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
    fn only_tools_are_advertised() {
        let info = FaceInfo::new("gate", "1.2.3").with_title("Gate");
        let written = initialize(&info, "2025-06-18");
        assert_eq!(
            std::str::from_utf8(&written).unwrap(),
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"gate","title":"Gate","version":"1.2.3"}}"#
        );
    }
}
