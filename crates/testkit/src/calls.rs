//! The tools of chaos servers, and calls of every kind.

use callward_core::{Annotations, ArgumentRule, Condition, ToolDefinition, When};
use serde_json::json;

use crate::truth::Sort;

/// Tools to call, and the kind of each call.
pub const KINDS: [(&str, Sort); 8] = [
    ("pay", Sort::Unsafe),
    ("send", Sort::Unsafe),
    ("wipe", Sort::Unsafe),
    ("tabs", Sort::Unsafe),
    ("tabs", Sort::Repeatable),
    ("set", Sort::Repeatable),
    ("get", Sort::Shared),
    ("wipe", Sort::Unsafe),
];

/// Lists the tools.
pub fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, hints| ToolDefinition::named(name.parse().unwrap(), hints);
    let no_hints = Annotations::default;
    vec![
        tool("pay", no_hints()),
        tool("send", no_hints().with_destructive(false)),
        tool(
            "wipe",
            no_hints().with_destructive(true).with_idempotent(true),
        ),
        tool("tabs", no_hints().with_destructive(true)),
        tool(
            "set",
            no_hints().with_destructive(false).with_idempotent(true),
        ),
        tool("get", no_hints().with_read_only(true)),
    ]
}

/// Returns the arguments of a call; those of `tabs` decide its kind.
pub fn arguments(tool: &str, sort: Sort, call: u64) -> String {
    match (tool, sort) {
        (_, Sort::Shared) => json!({"of": call % 7}).to_string(),
        ("tabs", Sort::Repeatable) => json!({"call": call, "action": "list"}).to_string(),
        // parsers differ on duplicate members and on case
        ("tabs", _) => match call % 3 {
            0 => format!(r#"{{"call":{call},"action":"close"}}"#),
            1 => format!(r#"{{"call":{call},"action":"list","Action":"close"}}"#),
            _ => format!(r#"{{"call":{call},"action":"close","action":"list"}}"#),
        },
        _ => json!({"call": call}).to_string(),
    }
}

/// The operator's rule for `tabs`: it only reads if `action` is `list`.
pub fn tabs_that_read() -> ArgumentRule {
    let lists = When::argument("action", Condition::equals("list")).unwrap();
    ArgumentRule::new(lists, Annotations::default().with_read_only(true)).unwrap()
}
