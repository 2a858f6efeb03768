//! The tools and what they say about themselves.

use serde_json::{Map, Value, json};

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Answers 200 bytes.
    Noop,
    Get,
    /// As `Get`, after `ms` milliseconds.
    Slow,
    Append,
    Set,
    Delete,
    /// Answers a number that grows each second.
    Level,
    /// Answers how often the tool was called with the key.
    Count,
}

/// The servers of the process: one address, three paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Without sessions.
    Main,
    /// Without sessions, over the same items as `Main`: another server that changes its state.
    Other,
    /// With sessions, and state of its own for each of them.
    Sessions,
}

impl Server {
    /// Whether the server lists a tool. No name is listed by both `Main` and `Other`.
    #[must_use]
    pub fn lists(self, tool: &str) -> bool {
        match self {
            Self::Main => tool != OTHER && !tool.starts_with("count_"),
            Self::Other => tool == OTHER,
            Self::Sessions => tool != OTHER,
        }
    }
}

/// The tool of [`Server::Other`].
const OTHER: &str = "other_set";

/// Each tool of the servers, once.
pub const ALL: &[(&str, Work, &str)] = &[
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
    ("level_get", Work::Level, "Gets the level"),
    (OTHER, Work::Set, "Replaces an item of the main server"),
    ("count_calls", Work::Count, "Counts calls"),
    ("count_reads", Work::Count, "Counts calls"),
];

/// The tool of a name, with its name as it is kept.
pub fn find(name: &str) -> Option<(&'static str, Work)> {
    ALL.iter()
        .find(|(known, ..)| *known == name)
        .map(|(known, work, _)| (*known, *work))
}

/// Between them every hint is there as true, as false, and not at all.
pub fn hints(name: &str, work: Work) -> Option<Map<String, Value>> {
    if name == "plain_get" {
        return None;
    }
    let mut hints = match work {
        Work::Noop | Work::Slow | Work::Level => json!({ "readOnlyHint": true }),
        // some servers declare so, though what they answer depends on earlier calls
        Work::Count if name == "count_reads" => json!({ "readOnlyHint": true }),
        Work::Get => {
            json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true })
        }
        Work::Append | Work::Count => {
            json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false })
        }
        Work::Set => {
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true })
        }
        Work::Delete => json!({ "destructiveHint": true }),
    };
    hints["title"] = json!(format!("The tool {name}"));
    hints["openWorldHint"] = json!(false);
    match hints {
        Value::Object(hints) => Some(hints),
        _ => None,
    }
}

/// The schema of a tool's arguments.
pub fn schema(work: Work) -> Map<String, Value> {
    let mut properties = json!({ "key": { "type": "string" } });
    let mut required = vec!["key"];
    match work {
        Work::Append | Work::Set => {
            properties["value"] = json!({ "type": "string" });
            required.push("value");
        }
        Work::Slow => properties["ms"] = json!({ "type": "integer", "minimum": 0 }),
        Work::Noop | Work::Get | Work::Delete | Work::Level | Work::Count => {}
    }
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties),
        ("required".to_owned(), json!(required)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hint_is_there_in_each_way() {
        let said: Vec<_> = ALL.iter().filter_map(|(n, w, _)| hints(n, *w)).collect();
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint"] {
            for way in [Some(&json!(true)), Some(&json!(false)), None] {
                assert!(
                    said.iter().any(|hints| hints.get(hint) == way),
                    "{hint} {way:?}"
                );
            }
        }
        assert_eq!(said.len() + 1, ALL.len());
    }

    #[test]
    fn no_tool_is_listed_by_two_servers_over_the_same_items() {
        for (tool, ..) in ALL {
            let listed = [Server::Main, Server::Other].map(|server| server.lists(tool));
            assert!(listed != [true, true], "{tool}");
        }
        assert!(Server::Other.lists("other_set") && !Server::Sessions.lists("other_set"));
        assert!(Server::Sessions.lists("count_calls") && !Server::Main.lists("count_calls"));
    }

    #[test]
    fn a_tool_is_found_by_its_name_alone() {
        assert_eq!(find("set_item"), Some(("set_item", Work::Set)));
        assert_eq!(find("set_items"), None);
    }
}
