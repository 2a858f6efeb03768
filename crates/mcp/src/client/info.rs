//! The description that a server gives of itself.

use std::collections::HashMap;

use callward_core::{List, Method};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::{Era, KNOWN_VERSIONS, LATEST, meta, tasks};

/// The most that is kept of the instructions, in bytes.
const MOST: usize = 16 << 10;

/// The longest version of a server's software, in bytes.
const MOST_VERSION: usize = 64;

/// The end of instructions that were cut.
const MARK: &str = "\n[cut]";

/// The description that a server gave of itself when the connection was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Which protocol it speaks.
    pub era: Era,
    /// The revision agreed on.
    pub version: String,
    /// The version of the server's software. Longer ones are cut at 64 bytes.
    pub software: Option<String>,
    /// Its instructions to the model. Longer ones are cut at 16 KiB, with `[cut]` at the end.
    pub instructions: Option<String>,
    /// The methods it answers, by its capabilities.
    pub methods: Vec<Method>,
    /// Whether it sends log messages.
    pub logging: bool,
    /// The lists whose changes it announces.
    pub announces: Vec<List>,
    /// Whether it announces updates of resources to those who subscribe.
    pub subscribes: bool,
    /// Whether it runs a call it gets twice under one idempotency key only once: whether it
    /// declares the experimental capability `io.callward/idempotency`.
    pub takes_idempotency_keys: bool,
    /// Whether an HTTP server opens a session, with an id or a stream, for a client that greets it
    /// with `initialize`, and so may keep state for each of them. A server of era [`Era::Modern`]
    /// may do so beside; it is asked only where the era is
    /// [`EraChoice::Auto`](super::EraChoice::Auto).
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
    instructions: Option<String>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized<'a> {
    protocol_version: String,
    #[serde(borrow)]
    capabilities: &'a RawValue,
    instructions: Option<String>,
    #[serde(borrow)]
    server_info: Option<&'a RawValue>,
}

/// Reads the version of the software from what describes it.
fn software(implementation: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Implementation {
        version: String,
    }
    let read = serde_json::from_str(implementation?.get());
    let Implementation { mut version } = read.ok()?;
    version.truncate(version.floor_char_boundary(MOST_VERSION));
    Some(version)
}

impl ServerInfo {
    /// States a server of this revision that offers nothing.
    pub(super) fn new(version: &str) -> Self {
        Self {
            era: Era::of(version),
            version: version.to_owned(),
            software: None,
            instructions: None,
            methods: Vec::new(),
            logging: false,
            announces: Vec::new(),
            subscribes: false,
            takes_idempotency_keys: false,
            opens_sessions: false,
            names_legacy: false,
        }
    }

    fn offering(version: &str, capabilities: &RawValue, mut instructions: Option<String>) -> Self {
        if let Some(text) = instructions.as_mut().filter(|text| text.len() > MOST) {
            text.truncate(text.floor_char_boundary(MOST - MARK.len()));
            text.push_str(MARK);
            text.shrink_to_fit();
        }
        // those that cannot be read as a tree declare nothing
        let capabilities: Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
        Self {
            instructions,
            methods: answered(Era::of(version), &capabilities),
            logging: capabilities["logging"].is_object(),
            announces: List::ALL
                .iter()
                .filter(|list| capabilities[list.as_str()]["listChanged"] == true)
                .copied()
                .collect(),
            subscribes: capabilities["resources"]["subscribe"] == true,
            // an object declares a capability, as everywhere in the protocol
            takes_idempotency_keys: capabilities["experimental"][meta::IDEMPOTENCY].is_object(),
            ..Self::new(version)
        }
    }

    /// Returns `true` if the server has such a list, as far as is known: many servers do not
    /// declare tools.
    pub(super) fn offers(&self, list: List) -> bool {
        let mut methods = self.methods.iter();
        list == List::Tools || methods.any(|method| method.list() == Some(list))
    }

    /// Reads a `server/discover` result: what the server says, or the revisions that it lists if no
    /// modern one is spoken here.
    pub(super) fn discovered(raw: &[u8]) -> serde_json::Result<Result<Self, Vec<String>>> {
        let found: Discovered<'_> = serde_json::from_slice(raw)?;
        let versions = found.supported_versions;
        if !versions.iter().any(|version| version == LATEST) {
            return Ok(Err(versions));
        }
        let meta = found
            .meta
            .and_then(|meta| serde_json::from_str(meta.get()).ok());
        let implementation =
            meta.and_then(|mut meta: HashMap<String, &RawValue>| meta.remove(meta::SERVER_INFO));
        Ok(Ok(Self {
            names_legacy: shares_legacy(&versions),
            software: software(implementation),
            ..Self::offering(LATEST, found.capabilities, found.instructions)
        }))
    }

    /// Reads an `initialize` result.
    pub(super) fn initialized(raw: &[u8]) -> Result<Self, String> {
        let Initialized {
            protocol_version: version,
            capabilities,
            instructions,
            server_info,
        } = serde_json::from_slice(raw)
            .map_err(|error| format!("its `initialize` result cannot be read: {error}"))?;
        if !KNOWN_VERSIONS.contains(&version.as_str()) {
            let known = KNOWN_VERSIONS.join(", ");
            return Err(format!(
                "it speaks revision {version:?}; known here are {known}"
            ));
        }
        Ok(Self {
            software: software(server_info),
            ..Self::offering(&version, capabilities, instructions)
        })
    }
}

/// Returns the methods that a server with these capabilities answers. Tasks of earlier revisions
/// are others.
fn answered(era: Era, capabilities: &Value) -> Vec<Method> {
    let has_tasks = era == Era::Modern && capabilities["extensions"][tasks::TASKS].is_object();
    let declares = |method: &&Method| match method.list() {
        Some(list) => capabilities[list.as_str()].is_object(),
        None if method.is_of_task() => has_tasks,
        None => capabilities["completions"].is_object(),
    };
    Method::ALL.iter().filter(declares).copied().collect()
}

/// Returns `true` if one of the revisions begins with `initialize` and is spoken here.
pub(super) fn shares_legacy(versions: &[String]) -> bool {
    versions.iter().any(|version| {
        Era::of(version) == Era::Legacy && KNOWN_VERSIONS.contains(&version.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_are_too_long_are_cut_when_they_come() {
        for (length, is_cut) in [(MOST / 2, false), (MOST / 2 + 1, true), (1 << 20, true)] {
            let said = "ü".repeat(length);
            let raw = format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"instructions":"{said}"}}"#
            );
            let info = ServerInfo::initialized(raw.as_bytes()).unwrap();
            let kept = info.instructions.unwrap();
            assert!(
                kept.capacity() <= MOST && kept.starts_with("üü"),
                "{length}"
            );
            assert_eq!((kept != said, kept.ends_with("ü\n[cut]")), (is_cut, is_cut));
        }
    }

    #[test]
    fn a_discovery_is_modern_only_if_a_revision_is_shared() {
        let raw = br#"{"supportedVersions":["2025-11-25","2026-07-28"],
            "capabilities":{"tools":{"listChanged":true}},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}}"#;
        let info = ServerInfo::discovered(raw).unwrap().unwrap();
        assert!(info.announces == [List::Tools] && info.names_legacy);
        assert_eq!(info.software.as_deref(), Some("1"));
        // numbers that no tree holds hide nothing
        let odd = br#"{"x":1e400,"supportedVersions":["2026-07-28"],"capabilities":{"x":1e400}}"#;
        assert!(ServerInfo::discovered(odd).unwrap().is_ok());
        let other = ServerInfo::discovered(br#"{"supportedVersions":["9"],"capabilities":{}}"#);
        assert_eq!(other.unwrap(), Err(vec!["9".to_owned()]));
        assert!(ServerInfo::discovered(b"{}").is_err());
        let unknown = br#"{"protocolVersion":"1999-01-01","capabilities":{}}"#;
        let error = ServerInfo::initialized(unknown).unwrap_err();
        assert!(error.contains("1999-01-01"), "{error}");
    }
}
