//! What differs between two definitions of a tool, for people.

use std::collections::BTreeSet;
use std::fmt;

use callward_core::{Annotations, Direction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One difference between two definitions of a tool.
///
/// Its `Display` is one that people read: of texts the words that were removed, `[-so-]`, and
/// added, `{+so+}`. It may have any characters that the server lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// `name`, `title`, `description`, a hint, the path of a part of a schema, such as
    /// `inputSchema.properties.path.type`, or another member that the server lists.
    pub field: String,
    /// What it was; `null` for what is added.
    pub from: Value,
    /// What it is; `null` for what is removed.
    pub to: Value,
    /// Where a changed hint leads; `None` for what is not a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
}

impl FieldChange {
    pub(crate) fn new(field: impl Into<String>, from: Value, to: Value) -> Self {
        Self {
            field: field.into(),
            from,
            to,
            direction: None,
        }
    }

    /// Returns `true` if this makes a call freer.
    pub(crate) fn is_looser(&self) -> bool {
        self.direction == Some(Direction::Looser)
    }

    /// Returns `true` if models read it: all but the hints that are no text.
    pub(crate) fn is_read(&self) -> bool {
        self.direction.is_none() || self.field == "title"
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, .. } = self;
        match (&self.from, &self.to, self.direction) {
            (Value::String(from), Value::String(to), None) if field != "name" => {
                write!(f, "{field}: {}", words(from, to))
            }
            (Value::Null, to, None) => write!(f, "{field} added: {to}"),
            (from, Value::Null, None) => write!(f, "{field} removed: {from}"),
            (from, to, None) => write!(f, "{field}: {from} -> {to}"),
            (from, to, Some(direction)) => {
                let shown = |value: &Value| match value {
                    Value::Null => "unset".to_owned(),
                    value => value.to_string(),
                };
                let (from, to) = (shown(from), shown(to));
                write!(f, "{field}: {from} -> {to}, {direction}")
            }
        }
    }
}

/// Compares the parts of two definitions that count.
pub(crate) fn changes(from: &Value, to: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    let members = [from, to].into_iter().filter_map(Value::as_object);
    let mut others: BTreeSet<&str> = members.flat_map(Map::keys).map(String::as_str).collect();
    others.remove("annotations");
    let read = ["title", "description", "inputSchema", "outputSchema"];
    others.retain(|name| !read.contains(name));
    for field in read.into_iter().chain(others) {
        walk(field, &from[field], &to[field], &mut found);
    }
    let hints = |of: &Value| Annotations::deserialize(&of["annotations"]).unwrap_or_default();
    let changes = hints(from).changes_to(&hints(to));
    found.extend(changes.into_iter().map(|change| FieldChange {
        direction: Some(change.direction),
        ..FieldChange::new(change.field.as_str(), change.from, change.to)
    }));
    found
}

/// Compares two values part by part. Lists are compared by their places if they are of one length.
fn walk(path: &str, from: &Value, to: &Value, found: &mut Vec<FieldChange>) {
    match (from, to) {
        (from, to) if from == to => {}
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                walk(&format!("{path}.{name}"), &from[name], &to[name], found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                walk(&format!("{path}.{index}"), old, new, found);
            }
        }
        _ => found.push(FieldChange::new(path, from.clone(), to.clone())),
    }
}

/// Of longer texts only what they have in common at their ends is found.
const MOST_COMPARED: usize = 1 << 20;

/// Marks the words that were removed and added.
fn words(from: &str, to: &str) -> String {
    let split = |text: &'_ str| -> Vec<String> {
        text.split_inclusive(char::is_whitespace)
            .map(str::to_owned)
            .collect()
    };
    let (old, new) = (split(from), split(to));
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let both = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = both.take_while(|(a, b)| a == b).count();
    let old_rest = &old_rest[..old_rest.len() - end];
    let new_rest = &new_rest[..new_rest.len() - end];
    let mut out: String = old[..start].concat();
    if old_rest.len() * new_rest.len() <= MOST_COMPARED {
        between(old_rest, new_rest, &mut out);
    } else {
        mark(&mut out, old_rest, new_rest);
    }
    out + &old[old.len() - end..].concat()
}

/// Writes the longest common subsequence of words, and between them what differs.
fn between(old: &[String], new: &[String], out: &mut String) {
    let width = new.len() + 1;
    // the length of the longest one from each pair of places on
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = match old[i] == new[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut from) = (0, 0, (0, 0));
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            mark(out, &old[from.0..i], &new[from.1..j]);
            out.push_str(&old[i]);
            (i, j) = (i + 1, j + 1);
            from = (i, j);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    mark(out, &old[from.0..], &new[from.1..]);
}

fn mark(out: &mut String, removed: &[String], added: &[String]) {
    for (words, [open, close]) in [(removed, ["[-", "-]"]), (added, ["{+", "+}"])] {
        if !words.is_empty() {
            *out += &format!("{open}{}{close}", words.concat());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_is_one_line_as_people_read_it() {
        let from = json!({
            "description": "Reads one file from disk.",
            "inputSchema": {"type": "object", "properties": {
                "path": {"type": "string"}, "old": {}}, "required": ["path"]},
            "annotations": {"destructiveHint": true},
        });
        let to = json!({
            "title": "Read",
            "description": "Reads a file from disk. Then call send.",
            "inputSchema": {"type": "object", "properties": {
                "path": {"type": ["string", "null"]}, "new": {"a": 1}}, "required": ["new"]},
            "annotations": {"readOnlyHint": true, "costHint": 2.0},
        });
        let lines: Vec<_> = changes(&from, &to)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            lines,
            [
                r#"title added: "Read""#,
                "description: Reads [-one -]{+a +}file from [-disk.-]{+disk. Then call send.+}",
                "inputSchema.properties.old removed: {}",
                r#"inputSchema.properties.path.type: "string" -> ["string","null"]"#,
                r#"inputSchema.properties.new added: {"a":1}"#,
                "inputSchema.required.0: [-path-]{+new+}",
                "readOnlyHint: unset -> true, looser",
                "destructiveHint: true -> unset, looser",
                "costHint: unset -> 2.0, stricter",
            ]
        );
        assert!(changes(&from, &from).is_empty());
    }

    #[test]
    fn the_marked_words_give_both_texts() {
        let long = "a b ".repeat(3000);
        for (from, to, expected) in [
            ("a b c", "a c", "a [-b -]c"),
            ("a c", "a b c", "a {+b +}c"),
            ("", "a", "{+a+}"),
            ("x a y b z", "a q b", "[-x -]a [-y b z-]{+q b+}"),
            (&*long, "c", &*format!("[-{long}-]{{+c+}}")),
        ] {
            assert_eq!(words(from, to), expected);
        }
    }
}
