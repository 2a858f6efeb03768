//! The keys that differ from their defaults: both sides serialized and compared.

use serde_json::{Map, Value, json};

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
            let mut keys = Keys::new();
            differing("", value, &defaults[key], &mut keys);
            let keys = self.references.scrub_keys(keys);
            match keys.get("") {
                Some(value) => sections.insert(key.clone(), value.clone()),
                None if keys.is_empty() => None,
                None => sections.insert(key.clone(), keys.into()),
            };
        }
        sections
    }

    /// Returns the same of one server; how it is reached is left out.
    pub(crate) fn changed_of(&self, server: &ServerConfig) -> Keys {
        let mut keys = Keys::new();
        differing("", &server.shown(), &json!(Server::default()), &mut keys);
        self.references.scrub_keys(keys)
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Collects the leaves that differ, each under its dotted path.
fn differing(path: &str, ours: &Value, defaults: &Value, found: &mut Keys) {
    match ours {
        _ if ours == defaults => {}
        Value::Object(table) => {
            for (key, value) in table {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                differing(&path, value, &defaults[key], found);
            }
        }
        leaf => {
            found.insert(path.to_owned(), leaf.clone());
        }
    }
}
