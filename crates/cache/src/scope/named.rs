//! The scopes of one call by name, for display.

use std::fmt;

use callward_core::{ReplicaSetId, ToolCall};

use super::access;
use super::rules::{ScopeTemplate, ToolScopes};

/// A piece of state, as a rule names it for one call.
///
/// Its `Display` is the template that would name just it: `@shop/order:7`, or `@shop` for
/// everything of the replica set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NamedScope {
    /// The replica set it belongs to.
    pub set: ReplicaSetId,
    /// Its name there, with the values of arguments as they are compared; `None` for everything of
    /// the set.
    pub name: Option<String>,
}

impl fmt::Display for NamedScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "@{}/{name}", self.set),
            None => write!(f, "@{}", self.set),
        }
    }
}

impl ToolScopes {
    /// Returns the scopes that the result of a call depends on, if it is a read; `None` without a
    /// rule: everything of the tool's replica set.
    #[must_use]
    pub fn read_by(&self, call: &ToolCall) -> Option<Vec<NamedScope>> {
        Some(of_call(self.reads.as_deref()?, call))
    }

    /// Returns the scopes that a call may change, if it is a write; `None` without a rule:
    /// everything of the tool's replica set.
    #[must_use]
    pub fn written_by(&self, call: &ToolCall) -> Option<Vec<NamedScope>> {
        Some(of_call(self.writes.as_deref()?, call))
    }
}

fn of_call(templates: &[ScopeTemplate], call: &ToolCall) -> Vec<NamedScope> {
    let named = access::named(templates, call.tool().set(), call).into_iter();
    let each = |(set, names): (&ReplicaSetId, Option<Vec<String>>)| {
        let names = names.map_or_else(|| vec![None], |names| names.into_iter().map(Some).collect());
        let set = set.clone();
        names.into_iter().map(move |name| NamedScope {
            set: set.clone(),
            name,
        })
    };
    named.flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use callward_testkit::{call, tool};
    use serde_json::{Value, json};

    use super::*;

    fn read(template: &str, arguments: Value) -> Vec<String> {
        let scopes = ToolScopes::reading([template, "@billing"]).unwrap();
        let call = call(&tool("get").set("shop").read_only().build(), arguments);
        assert_eq!(scopes.written_by(&call), None);
        let read = scopes.read_by(&call).unwrap();
        read.iter().map(ToString::to_string).collect()
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
