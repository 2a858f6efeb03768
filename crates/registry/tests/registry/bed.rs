//! A registry of sets, each with one server of the same name.

use std::ops::Deref;
use std::sync::Arc;

use callward_core::{
    Annotations, Instances, ReplicaSetId, ServerId, Tool, ToolDefinition, ToolName,
};
use callward_registry::{Catalogue, Changes, Registry, SetOptions};
use serde_json::{Value, json};

pub(crate) fn set(name: &str) -> ReplicaSetId {
    name.parse().unwrap()
}

pub(crate) fn server(name: &str) -> ServerId {
    name.parse().unwrap()
}

pub(crate) fn name(name: &str) -> ToolName {
    name.parse().unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over values")]
pub(crate) fn definition(tool: impl ToString) -> ToolDefinition {
    ToolDefinition::from_json(tool.to_string()).unwrap()
}

pub(crate) fn prefixed(prefix: &str) -> SetOptions {
    let mut options = SetOptions::default();
    options.prefix = Some(prefix.to_owned());
    options
}

pub(crate) fn overriding(tool: &str, hints: Annotations) -> SetOptions {
    let mut options = SetOptions::default();
    options.overrides.insert(name(tool), hints);
    options
}

#[derive(Default)]
pub(crate) struct Bed(Registry);

impl Deref for Bed {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.0
    }
}

impl Bed {
    pub(crate) fn with<const N: usize>(sets: [(&str, SetOptions); N]) -> Self {
        let bed = Self::default();
        for (name, options) in sets {
            bed.change_options(&set(name), options);
        }
        bed
    }

    pub(crate) fn list(&self, of: &str, tools: impl IntoIterator<Item = Value>) -> Changes {
        self.add(of, of, tools.into_iter().map(definition).collect())
    }

    pub(crate) fn add(&self, of: &str, by: &str, tools: Vec<ToolDefinition>) -> Changes {
        self.register(&set(of), &server(by), tools, Instances::Shared)
    }

    pub(crate) fn names(&self, of: &str, names: &[&str]) -> Changes {
        self.list(of, names.iter().map(|name| json!({"name": name})))
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<Tool> {
        self.catalogue().find(name).unwrap().tool().clone()
    }

    /// Returns the set and the tool that a name leads to.
    pub(crate) fn owner(&self, name: &str) -> Option<(String, String)> {
        let catalogue = self.catalogue();
        let tool = catalogue.find(name)?.tool();
        Some((tool.set().to_string(), tool.name().to_string()))
    }

    pub(crate) fn refusals(&self) -> Vec<String> {
        let catalogue = self.catalogue();
        let refused = catalogue.refused().iter();
        refused
            .map(|it| format!("{}: {}", it.tool, it.reason))
            .collect()
    }
}

pub(crate) fn client_names(catalogue: &Catalogue) -> Vec<&str> {
    let entries = catalogue.entries().iter();
    entries.map(|entry| entry.client_name()).collect()
}

/// Checks that each refusal begins so, and that there are no others.
pub(crate) fn assert_refused(refusals: &[String], expected: &[&str]) {
    assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
    for (refusal, expected) in refusals.iter().zip(expected) {
        assert!(refusal.starts_with(expected), "{refusals:?}");
    }
}
