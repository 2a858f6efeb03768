//! References to tools: by name, or by the hash of what the tool is.

use std::fmt;

use callward_core::{Members, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A reference to a tool, by `namespacedName`, by `refId` or by both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolRef {
    /// `server.tool`, or the name that clients see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaced_name: Option<String>,
    /// See [`ref_id`]: it refers to no other version of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_id: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl ToolRef {
    /// Refers to a tool by name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            namespaced_name: Some(name.into()),
            ..Self::default()
        }
    }

    /// Refers to a tool as people write it: 64 hexadecimal digits are its hash.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Self::named(text);
        }
        Self {
            ref_id: Some(text.to_ascii_lowercase()),
            ..Self::default()
        }
    }

    /// Returns the reference to this tool of the same kind: by name if this one has a name, by hash
    /// if it has one, and without members that are not known.
    #[must_use]
    pub fn to_tool(&self, tool: &Tool) -> Self {
        let Self {
            namespaced_name,
            ref_id,
            rest,
        } = Self::full(tool);
        Self {
            namespaced_name: namespaced_name.filter(|_| self.namespaced_name.is_some()),
            ref_id: ref_id.filter(|_| self.ref_id.is_some()),
            rest,
        }
    }

    /// Returns the full reference to this tool, by name and by hash.
    #[must_use]
    pub fn full(tool: &Tool) -> Self {
        Self {
            ref_id: Some(ref_id(tool)),
            ..Self::named(namespaced(tool))
        }
    }

    /// Returns `true` if both have the same name, or the same hash.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        same(&self.namespaced_name, &other.namespaced_name) || same(&self.ref_id, &other.ref_id)
    }
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.namespaced_name.as_ref().or(self.ref_id.as_ref());
        f.write_str(shown.map_or("", String::as_str))
    }
}

/// Returns `server.tool`, where the server is the replica set.
pub(crate) fn namespaced(tool: &Tool) -> String {
    format!("{}.{}", tool.set(), tool.name())
}

/// Returns the hash of a tool: over its replica set, name, description and schemas, so that it
/// refers to no tool that says something else.
#[must_use]
pub fn ref_id(tool: &Tool) -> String {
    let text = std::str::from_utf8(&tool.definition.raw).unwrap_or_default();
    let members = Members::read(text).ok();
    let member = |name| -> Value {
        let raw = members.as_ref().and_then(|members| members.last(name));
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    };
    // the members of objects are in the order of their names
    let hashed = json!([
        tool.set(),
        tool.name(),
        tool.definition.description,
        member("inputSchema"),
        member("outputSchema"),
    ]);
    let hash = Sha256::digest(hashed.to_string());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
