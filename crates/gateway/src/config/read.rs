//! Reads a parsed file into [`Config`] key by key, so that one fault hides no other.
//!
//! A key is known if the serialized defaults have it. Each key is first read in a file of its own;
//! one that cannot be read is reported and taken out, and the rest is read at once.

use callward::core::Field;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

use super::error::{Fault, Source};
use super::server::ToolConfig;
use super::{Config, Server};
use crate::similar::near;

/// Reads what can be read. The faults are those of all other keys.
pub(super) fn read(mut root: Spanned<DeValue<'_>>, source: &Source<'_>) -> (Config, Vec<Fault>) {
    let hints = Field::ALL.iter().map(|field| (field.as_str(), Value::Null));
    let (mut server, mut tool) = (json!(Server::default()), json!(ToolConfig::default()));
    server["annotations"] = hints.clone().collect();
    for (hint, value) in hints {
        tool[hint] = value;
    }
    server["tools"] = json!({ ANY: tool });
    let mut defaults = json!(Config::default());
    defaults["servers"] = json!({ ANY: server });
    let mut reader = Reader {
        source,
        faults: Vec::new(),
    };
    if let DeValue::Table(table) = root.get_mut() {
        reader.table(table, &defaults, &mut Vec::new());
    }
    let config = Config::deserialize(ValueDeserializer::from(root));
    let config = config.unwrap_or_else(|error| {
        reader.faults.push(source.parser_fault(&error));
        Config::default()
    });
    (config, reader.faults)
}

/// Stands for all names of a table's keys.
const ANY: &str = "*";

struct Reader<'a, 'i> {
    source: &'a Source<'i>,
    faults: Vec<Fault>,
}

type Path<'i> = Vec<Spanned<DeString<'i>>>;

impl Reader<'_, '_> {
    /// Checks the keys of a table, and takes out those that cannot be read.
    fn table<'t>(&mut self, table: &mut DeTable<'t>, defaults: &Value, path: &mut Path<'t>) {
        let keys: Vec<_> = table.keys().cloned().collect();
        for key in keys {
            let Some(value) = table.get_mut(&key) else {
                continue;
            };
            let name = key.get_ref().to_string();
            let span = key.span();
            path.push(key.clone());
            let known = defaults.get(&name);
            // the short forms of hints, such as `readOnly`
            let known = known.or_else(|| defaults.get(format!("{name}Hint")));
            let known = known.or_else(|| defaults.get(ANY));
            let faults = match (known, value.get_mut()) {
                (None, _) => {
                    let message = unknown(&name, defaults);
                    vec![self.source.fault(Some(span), dotted(path), message)]
                }
                // maps are empty by default, and read as a whole
                (Some(inner @ Value::Object(known)), DeValue::Table(table))
                    if !known.is_empty() =>
                {
                    self.table(table, inner, path);
                    Vec::new()
                }
                (Some(Value::Object(known)), _) if !known.is_empty() => {
                    let span = Some(value.span());
                    let message = format!("expected a table, [{}]", dotted(path));
                    vec![self.source.fault(span, dotted(path), message)]
                }
                _ => self.alone(value, path),
            };
            if !faults.is_empty() {
                self.faults.extend(faults);
                table.remove(&key);
            }
            path.pop();
        }
    }

    /// Reads a file with this key alone. Of a list, each element is read alone too.
    fn alone<'t>(&self, value: &Spanned<DeValue<'t>>, path: &Path<'t>) -> Vec<Fault> {
        let mut inner = value.clone();
        for key in path.iter().rev() {
            let mut table = DeTable::new();
            table.insert(key.clone(), inner);
            inner = Spanned::new(value.span(), DeValue::Table(table));
        }
        let Err(error) = Config::deserialize(ValueDeserializer::from(inner)) else {
            return Vec::new();
        };
        if let DeValue::Array(items) = value.get_ref()
            && items.len() > 1
        {
            let alone = |item: &Spanned<_>| DeValue::Array([item.clone()].into_iter().collect());
            let each = items
                .iter()
                .map(|item| Spanned::new(item.span(), alone(item)));
            let faults: Vec<_> = each.flat_map(|one| self.alone(&one, path)).collect();
            if !faults.is_empty() {
                return faults;
            }
        }
        let mut fault = self.source.parser_fault(&error);
        let key = dotted(path);
        if !super::is_within(&fault.key, &key) {
            fault = self.source.fault(Some(value.span()), key, fault.message);
        }
        vec![fault]
    }
}

fn dotted(path: &Path<'_>) -> String {
    let names: Vec<&str> = path.iter().map(|key| key.get_ref().as_ref()).collect();
    names.join(".")
}

/// States that a key is unknown, with the one that may have been meant or else all known ones.
fn unknown(name: &str, known: &Value) -> String {
    let known = known.as_object().into_iter().flat_map(Map::keys);
    let known: Vec<&str> = known.map(String::as_str).collect();
    let expected = near(name, known.iter().copied())
        .unwrap_or_else(|| format!("expected one of `{}`", known.join("`, `")));
    format!("unknown field `{name}`, {expected}")
}
