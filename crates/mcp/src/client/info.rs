//! What a server says about itself.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{Era, KNOWN_VERSIONS, LATEST, meta};

/// What a server said about itself when the connection was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Which protocol it speaks.
    pub era: Era,
    /// The revision agreed on.
    pub version: String,
    /// Its implementation object (`name`, `version`, …), raw.
    pub implementation: Option<Bytes>,
    /// Its capabilities object, raw.
    pub capabilities: Bytes,
    /// Its instructions to the model.
    pub instructions: Option<String>,
    /// Whether it announces changes of its tools.
    pub tools_list_changed: bool,
    /// Whether it runs a call it gets twice under one idempotency key only once: whether it
    /// declares the experimental capability `io.callward/idempotency`.
    pub takes_idempotency_keys: bool,
    /// Whether an HTTP server opens a session, with an id, for a client that greets it with
    /// `initialize`, and so may keep state for each of them. A server of era [`Era::Modern`] may do
    /// so beside; it is asked only where the era is [`EraChoice::Auto`](super::EraChoice::Auto).
    pub opens_sessions: bool,
    /// Whether a discovery lists a revision that begins with `initialize`.
    pub(super) names_legacy: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered<'a> {
    supported_versions: Vec<String>,
    #[serde(borrow)]
    capabilities: &'a RawValue,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default, borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized<'a> {
    protocol_version: String,
    #[serde(borrow)]
    capabilities: &'a RawValue,
    #[serde(default, borrow)]
    server_info: Option<&'a RawValue>,
    #[serde(default)]
    instructions: Option<String>,
}

/// What a `server/discover` result amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// We share a modern revision.
    Modern(ServerInfo),
    /// The server lists revisions, but no modern one of ours.
    Other(Vec<String>),
}

impl ServerInfo {
    /// Reads a `server/discover` result.
    pub(super) fn discovered(raw: &[u8]) -> Result<Discovery, serde_json::Error> {
        let found: Discovered<'_> = serde_json::from_slice(raw)?;
        if !found.supported_versions.iter().any(|v| v == LATEST) {
            return Ok(Discovery::Other(found.supported_versions));
        }
        let implementation = found.meta.and_then(|meta| {
            crate::wire::object::get_member(meta.get().as_bytes(), meta::SERVER_INFO).ok()?
        });
        Ok(Discovery::Modern(Self {
            era: Era::Modern,
            version: LATEST.to_owned(),
            implementation: implementation.map(Bytes::copy_from_slice),
            capabilities: owned(found.capabilities),
            instructions: found.instructions,
            tools_list_changed: list_changed(found.capabilities),
            takes_idempotency_keys: takes_keys(found.capabilities),
            opens_sessions: false,
            names_legacy: shares_legacy(&found.supported_versions),
        }))
    }

    /// Reads an `initialize` result.
    pub(super) fn initialized(raw: &[u8]) -> Result<Self, String> {
        let found: Initialized<'_> = serde_json::from_slice(raw)
            .map_err(|error| format!("its `initialize` result cannot be read: {error}"))?;
        if !KNOWN_VERSIONS.contains(&found.protocol_version.as_str()) {
            return Err(format!(
                "it speaks revision {:?}; known here are {}",
                found.protocol_version,
                KNOWN_VERSIONS.join(", ")
            ));
        }
        Ok(Self {
            era: Era::of(&found.protocol_version),
            version: found.protocol_version,
            implementation: found.server_info.map(owned),
            capabilities: owned(found.capabilities),
            instructions: found.instructions,
            tools_list_changed: list_changed(found.capabilities),
            takes_idempotency_keys: takes_keys(found.capabilities),
            opens_sessions: false,
            names_legacy: false,
        })
    }
}

/// Returns `true` if one of the revisions begins with `initialize` and is spoken here.
pub(super) fn shares_legacy(versions: &[String]) -> bool {
    versions.iter().any(|version| {
        Era::of(version) == Era::Legacy && KNOWN_VERSIONS.contains(&version.as_str())
    })
}

fn owned(raw: &RawValue) -> Bytes {
    Bytes::copy_from_slice(raw.get().as_bytes())
}

fn list_changed(capabilities: &RawValue) -> bool {
    let value: serde_json::Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
    value["tools"]["listChanged"] == true
}

/// An object declares a capability, as everywhere in the protocol.
fn takes_keys(capabilities: &RawValue) -> bool {
    let value: serde_json::Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
    value["experimental"][meta::IDEMPOTENCY].is_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discovery_is_modern_only_if_a_revision_is_shared() {
        let raw = br#"{"supportedVersions":["2025-11-25","2026-07-28"],
            "capabilities":{"tools":{"listChanged":true}},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}}"#;
        let Ok(Discovery::Modern(info)) = ServerInfo::discovered(raw) else {
            panic!("modern");
        };
        assert!(info.tools_list_changed && info.names_legacy);
        assert_eq!(
            info.implementation.as_deref(),
            Some(&br#"{"name":"x","version":"1"}"#[..])
        );
        let other = ServerInfo::discovered(br#"{"supportedVersions":["9"],"capabilities":{}}"#);
        assert_eq!(other.unwrap(), Discovery::Other(vec!["9".to_owned()]));
        assert!(ServerInfo::discovered(b"{}").is_err());
    }

    #[test]
    fn an_unknown_revision_is_named() {
        let error =
            ServerInfo::initialized(br#"{"protocolVersion":"1999-01-01","capabilities":{}}"#)
                .expect_err("unknown");
        assert!(error.contains("1999-01-01"), "{error}");
    }
}
