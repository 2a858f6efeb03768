//! Reads a parsed file into [`Config`] key by key, so that one fault hides no other.
//!
//! A key is known if the serialized defaults have it. Each key is first read in a file of its own;
//! one that cannot be read is reported and taken out, and the rest is read at once.

use std::ops::Range;

use callward::core::Field;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Error, ValueDeserializer};

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
    let mut faults = Vec::new();
    if let DeValue::Table(table) = root.get_mut() {
        faults = read_table(table, &defaults, &mut Vec::new(), source);
    }
    let config = Config::deserialize(ValueDeserializer::from(root));
    let config = config.unwrap_or_else(|error| {
        faults.push(source.parser_fault(&error));
        Config::default()
    });
    (config, faults)
}

/// Stands for all names of a table's keys.
const ANY: &str = "*";

type Path<'i> = Vec<Spanned<DeString<'i>>>;

/// Checks the keys of a table, and takes out those that cannot be read.
fn read_table<'t>(
    table: &mut DeTable<'t>,
    defaults: &Value,
    path: &mut Path<'t>,
    source: &Source<'_>,
) -> Vec<Fault> {
    let mut found = Vec::new();
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
        // maps are empty by default, and read as a whole
        let is_table = known
            .and_then(Value::as_object)
            .is_some_and(|keys| !keys.is_empty());
        let faults = match (known, value.get_mut()) {
            (None, _) => {
                let message = unknown(&name, defaults);
                vec![source.fault(Some(span), dotted(path), message)]
            }
            (Some(known), DeValue::Table(table)) if is_table => {
                found.extend(read_table(table, known, path, source));
                Vec::new()
            }
            _ if is_table => {
                let message = format!("expected a table, [{}]", dotted(path));
                vec![source.fault(Some(value.span()), dotted(path), message)]
            }
            _ => alone(value, path, source),
        };
        if !faults.is_empty() {
            found.extend(faults);
            table.remove(&key);
        }
        path.pop();
    }
    found
}

/// Reads a file with this key alone. Of a list, each element is read alone too; and of what has
/// keys of its own, the rest without the wrong one.
fn alone<'t>(value: &Spanned<DeValue<'t>>, path: &Path<'t>, source: &Source<'_>) -> Vec<Fault> {
    let (mut faults, mut rest) = (Vec::<Fault>::new(), value.clone());
    while faults.len() < MOST
        && let Err(error) = with_only(&rest, path)
    {
        if let DeValue::Array(items) = rest.get_ref()
            && items.len() > 1
        {
            let one = |item: &Spanned<_>| {
                let list = DeValue::Array([item.clone()].into_iter().collect());
                alone(&Spanned::new(item.span(), list), path, source)
            };
            let found: Vec<_> = items.iter().flat_map(one).collect();
            if !found.is_empty() {
                return found;
            }
        }
        let mut fault = source.parser_fault(&error);
        let key = dotted(path);
        if !super::is_within(&fault.key, &key) {
            fault = source.fault(Some(rest.span()), key, fault.message);
        }
        let is_in = |before: &Fault| super::is_within(&before.key, &fault.key);
        if faults.iter().any(is_in) {
            break; // what was cut is missing now
        }
        faults.push(fault);
        if !error.span().is_some_and(|span| cut(&mut rest, &span)) {
            break;
        }
    }
    faults
}

/// The most faults that are looked for in the value of one key.
const MOST: usize = 20;

/// Reads a file that has one key.
fn with_only<'t>(value: &Spanned<DeValue<'t>>, path: &Path<'t>) -> Result<Config, Error> {
    let mut inner = value.clone();
    for key in path.iter().rev() {
        let mut table = DeTable::new();
        table.insert(key.clone(), inner);
        inner = Spanned::new(value.span(), DeValue::Table(table));
    }
    Config::deserialize(ValueDeserializer::from(inner))
}

/// Takes out the innermost part that has this span. Returns `true` if there is one. The span of a
/// table is that of its heading.
fn cut(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    let has = |part: Range<usize>| part.start <= span.start && span.end <= part.end;
    let is_it = |inner: &Spanned<DeValue<'_>>| has(inner.span());
    match value.get_mut() {
        DeValue::Table(table) => {
            if table.iter_mut().any(|(_, inner)| cut(inner, span)) {
                return true;
            }
            let mut parts = table.iter();
            let found = parts.find(|(key, inner)| has(key.span()) || is_it(inner));
            let key = found.map(|(key, _)| key.clone());
            key.is_some_and(|key| table.remove(&key).is_some())
        }
        DeValue::Array(items) => {
            if items.iter_mut().any(|inner| cut(inner, span)) {
                return true;
            }
            let count = items.len();
            *items = items.iter().filter(|item| !is_it(item)).cloned().collect();
            items.len() < count
        }
        _ => false,
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
