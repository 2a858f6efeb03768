//! The tools and what they say about themselves.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Answers 200 bytes.
    Noop,
    Get,
    /// As `Get`, after `ms` milliseconds.
    Slow,
    Append,
    Set,
    Delete,
}

/// Each tool of the server, once.
pub(crate) const ALL: &[(&str, Work, &str)] = &[
    ("noop_get", Work::Noop, "Gets 200 bytes"),
    ("get_item", Work::Get, "Gets an item"),
    ("slow_get", Work::Slow, "Gets an item, slowly"),
    ("append_item", Work::Append, "Appends to an item"),
    ("set_item", Work::Set, "Replaces an item"),
    ("delete_item", Work::Delete, "Deletes an item"),
    ("flaky_get", Work::Get, "Gets an item"),
    ("flaky_append", Work::Append, "Appends to an item"),
    ("flaky_set", Work::Set, "Replaces an item"),
    ("flaky_delete", Work::Delete, "Deletes an item"),
    ("broken_get", Work::Get, "Gets an item"),
    ("plain_get", Work::Get, "Gets an item"),
];

/// The tool of a name, with its name as it is kept.
pub(crate) fn find(name: &str) -> Option<(&'static str, Work)> {
    ALL.iter()
        .find(|(known, ..)| *known == name)
        .map(|(known, work, _)| (*known, *work))
}

pub(crate) fn listed() -> Vec<Tool> {
    ALL.iter()
        .map(|(name, work, description)| {
            let tool = Tool::new(*name, *description, schema(*work));
            match hints(name, *work) {
                Some(hints) => tool.with_annotations(hints),
                None => tool,
            }
        })
        .collect()
}

/// Between them every hint is there as true, as false, and not at all.
fn hints(name: &str, work: Work) -> Option<ToolAnnotations> {
    if name == "plain_get" {
        return None;
    }
    let said = ToolAnnotations::with_title(format!("The tool {name}")).open_world(false);
    Some(match work {
        Work::Noop | Work::Slow => said.read_only(true),
        Work::Get => said.read_only(true).idempotent(true).destructive(false),
        Work::Append => said.read_only(false).idempotent(false).destructive(false),
        Work::Set => said.read_only(false).idempotent(true).destructive(true),
        Work::Delete => said.destructive(true),
    })
}

fn schema(work: Work) -> Arc<serde_json::Map<String, Value>> {
    let mut properties = json!({ "key": { "type": "string" } });
    let mut required = vec!["key"];
    match work {
        Work::Append | Work::Set => {
            properties["value"] = json!({ "type": "string" });
            required.push("value");
        }
        Work::Slow => properties["ms"] = json!({ "type": "integer", "minimum": 0 }),
        Work::Noop | Work::Get | Work::Delete => {}
    }
    Arc::new(serde_json::Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties),
        ("required".to_owned(), json!(required)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hint_is_there_in_each_way() {
        let said: Vec<_> = ALL.iter().filter_map(|(n, w, _)| hints(n, *w)).collect();
        for way in [Some(true), Some(false), None] {
            assert!(said.iter().any(|hints| hints.destructive_hint == way));
            assert!(said.iter().any(|hints| hints.idempotent_hint == way));
            assert!(said.iter().any(|hints| hints.read_only_hint == way));
        }
        assert_eq!(said.len() + 1, ALL.len());
    }

    #[test]
    fn a_tool_is_found_by_its_name_alone() {
        assert_eq!(find("set_item"), Some(("set_item", Work::Set)));
        assert_eq!(find("set_items"), None);
    }
}
