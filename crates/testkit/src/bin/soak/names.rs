//! The names that one gateway gives to tools: each belongs to one tool for as long as the gateway
//! runs.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

/// A tool under the name that the gateway gives to it.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// `SERVER.TOOL`, as the tool's description says.
    pub(crate) identity: String,
}

impl Named {
    pub(crate) fn server(&self) -> &str {
        self.identity.split('.').next().unwrap_or_default()
    }
}

/// Returns what a tool does, whatever stands before it in its name.
pub(crate) fn kind(tool: &str) -> &str {
    tool.rsplit(['.', '_']).next().unwrap_or_default()
}

/// All names that a gateway has listed.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Those that each list has.
    pub(crate) always: Vec<String>,
    pub(crate) seen: Mutex<BTreeMap<String, String>>,
}

impl Names {
    /// Reads a list of tools; returns what is wrong with it.
    pub(crate) fn read(&self, tools: &[Value]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen = self.seen.lock();
        let mut listed = Vec::new();
        for tool in tools {
            let text = |member: &str| tool[member].as_str().unwrap_or_default().to_owned();
            let (name, identity) = (text("name"), text("description"));
            let first = seen.entry(name.clone()).or_insert_with(|| identity.clone());
            if *first != identity {
                wrong.push(format!(
                    "{name} was the name of {first}, and is that of {identity}"
                ));
            }
            if listed.contains(&name) {
                wrong.push(format!("{name} is listed twice"));
            }
            listed.push(name);
        }
        let missing = self.always.iter().filter(|name| !listed.contains(name));
        wrong.extend(missing.map(|name| format!("{name} is missing from {listed:?}")));
        wrong
    }

    /// Returns any tool of this kind that was ever listed.
    pub(crate) fn any(&self, of: &str) -> Option<Named> {
        let seen = self.seen.lock();
        let found: Vec<_> = seen
            .iter()
            .filter(|(_, identity)| kind(identity) == of)
            .collect();
        let (name, identity) = found.get(fastrand::usize(..found.len().max(1)))?;
        Some(Named {
            name: (*name).clone(),
            identity: (*identity).clone(),
        })
    }
}
