//! The scopes of one call by name, for display.

use callward_core::ToolCall;

use super::access;
use super::rules::{ScopeTemplate, ToolScopes};

impl ToolScopes {
    /// Returns what the result of a read depends on; `None` without a rule: everything of the
    /// tool's replica set.
    ///
    /// Of a call these are templates that would name just its state, with the values of arguments
    /// as they are compared: `@shop/order:7`, or `@shop` for everything of the set. Without a call
    /// they are those of the rule.
    #[must_use]
    pub fn read_by(&self, call: Option<&ToolCall>) -> Option<Vec<String>> {
        Some(shown(self.reads.as_deref()?, call))
    }

    /// Returns what a write may change, as [`read_by`](Self::read_by) does.
    #[must_use]
    pub fn written_by(&self, call: Option<&ToolCall>) -> Option<Vec<String>> {
        Some(shown(self.writes.as_deref()?, call))
    }
}

fn shown(templates: &[ScopeTemplate], call: Option<&ToolCall>) -> Vec<String> {
    let Some(call) = call else {
        return templates.iter().map(ToString::to_string).collect();
    };
    let mut shown = Vec::new();
    for (set, names) in access::named(templates, call.tool().set(), call) {
        match names {
            None => shown.push(format!("@{set}")),
            Some(names) => shown.extend(names.iter().map(|name| format!("@{set}/{name}"))),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use callward_testkit::{call, tool};
    use serde_json::{Value, json};

    use super::*;

    fn read(template: &str, arguments: Value) -> Vec<String> {
        let scopes = ToolScopes::reading([template, "@billing"]).unwrap();
        let call = call(&tool("get").set("shop").read_only().build(), arguments);
        assert_eq!(scopes.written_by(Some(&call)), None);
        let templates = scopes.read_by(None).unwrap();
        assert_eq!(templates, [template, "@billing"]);
        scopes.read_by(Some(&call)).unwrap()
    }

    #[test]
    fn arguments_name_the_scopes_of_a_call() {
        let seven = ["@shop/order:7", "@billing"];
        assert_eq!(read("order:{id}", json!({"id": " 7.0"})), seven);
        assert_eq!(
            read("order:{id}", json!({"id": [7, 8]})),
            ["@shop/order:7", "@shop/order:8", "@billing"]
        );
    }

    #[test]
    fn a_template_without_its_argument_names_everything() {
        let all = ["@shop", "@billing"];
        assert_eq!(read("order:{id}", json!({})), all);
        assert_eq!(read("order:{id}", json!({"id": 7, "ID": 8})), all);
        assert_eq!(read("*", json!({"id": 7})), all);
    }
}
