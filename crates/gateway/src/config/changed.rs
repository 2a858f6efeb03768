//! The keys that differ from their defaults: both sides serialized and compared.

use serde_json::{Map, Value, json};

use super::error::dotted;
use super::{Config, Server, ServerConfig};

/// Keys with their values, as a file would have them; those of an inner table as `inner.key`.
pub(crate) type Keys = Map<String, Value>;

impl Config {
    /// Returns the keys whose values are not the defaults, by section; those of no section under
    /// "". What a reference came to is shown as the reference.
    pub(crate) fn changed(&self) -> Map<String, Value> {
        let (ours, defaults) = (json!(self), json!(Self::default()));
        let mut sections = Map::new();
        for (key, value) in members(&ours).filter(|(key, _)| *key != "servers") {
            let mut keys = self.differing("", value, &defaults[key]);
            if let Some(value) = keys.remove("") {
                sections.insert(key.clone(), value);
            } else if !keys.is_empty() {
                sections.insert(key.clone(), keys.into());
            }
        }
        sections
    }

    /// Returns the same of one server; how it is reached is left out.
    pub(crate) fn changed_of(&self, server: &ServerConfig) -> Keys {
        let (ours, defaults) = (json!(server.table), json!(Server::default()));
        let mut keys = self.differing("", &ours, &defaults);
        keys.retain(|key, _| !["command", "set", "weight", "prefix"].contains(&key.as_str()));
        keys
    }

    /// Returns the leaves that differ, each under its dotted path.
    fn differing(&self, path: &str, ours: &Value, defaults: &Value) -> Keys {
        if ours == defaults {
            return Keys::new();
        }
        if !ours.is_object() {
            return Keys::from_iter([(path.to_owned(), self.references.scrub_json(ours))]);
        }
        let inner = |(key, value): (&String, &Value)| {
            self.differing(&dotted(path, key), value, &defaults[key])
        };
        members(ours).flat_map(inner).collect()
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
