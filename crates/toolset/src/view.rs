//! A toolset over the tools that there are now.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::Members;
use callward_registry::{Catalogue, Entry, rewrite};
use serde_json::Value;

use crate::model::{Note, Toolset};
use crate::notes::hydrate;
use crate::refer::{ToolRef, ref_id};

/// Finds the tools of references in one catalogue.
#[derive(Debug)]
pub struct Resolver<'a> {
    catalogue: &'a Catalogue,
    /// Made when a first reference by hash is resolved.
    by_id: OnceCell<HashMap<String, &'a Arc<Entry>>>,
}

impl<'a> Resolver<'a> {
    /// Takes a catalogue.
    #[must_use]
    pub const fn new(catalogue: &'a Catalogue) -> Self {
        let by_id = OnceCell::new();
        Self { catalogue, by_id }
    }

    /// Returns the tool of a reference. One by name and hash refers to no tool if they disagree: a
    /// tool that has changed is another one.
    #[must_use]
    pub fn find(&self, tool: &ToolRef) -> Option<&'a Arc<Entry>> {
        match (&tool.namespaced_name, &tool.ref_id) {
            (Some(name), None) => self.named(name),
            (Some(name), Some(id)) => {
                let found = self.named(name);
                found.filter(|entry| ref_id(entry.tool()) == *id)
            }
            (None, Some(id)) => {
                let entries = self.catalogue.entries().iter();
                let by_id = || entries.map(|entry| (ref_id(entry.tool()), entry)).collect();
                self.by_id.get_or_init(by_id).get(id).copied()
            }
            (None, None) => None,
        }
    }

    /// Finds a tool as `server.tool`, or else by a name that clients use: no server can take over
    /// the reference to a tool of another one by the name of its own.
    fn named(&self, name: &str) -> Option<&'a Arc<Entry>> {
        let found = self.catalogue.find(name);
        let is_exact = |entry: &&Arc<Entry>| {
            let rest = name.strip_prefix(entry.tool().set().as_str());
            rest.and_then(|rest| rest.strip_prefix('.')) == Some(entry.tool().name().as_str())
        };
        if found.as_ref().is_none_or(is_exact) {
            return found;
        }
        let mut entries = self.catalogue.entries().iter();
        entries.find(is_exact).or(found)
    }
}

/// The tools of a toolset that there are, as they are listed.
#[derive(Debug, Default)]
pub struct View {
    /// By the name that clients see.
    listed: HashMap<String, Bytes>,
    missing: Vec<ToolRef>,
}

impl View {
    /// Finds the tools of a toolset.
    #[must_use]
    pub fn new(toolset: &Toolset, catalogue: &Catalogue) -> Self {
        let resolver = Resolver::new(catalogue);
        let mut view = Self::default();
        for reference in &toolset.tools {
            let Some(entry) = resolver.find(reference) else {
                view.missing.push(reference.clone());
                continue;
            };
            let notes = match toolset.tool_notes.is_empty() {
                true => Vec::new(),
                false => toolset.notes_of(&ToolRef::full(entry.tool())),
            };
            let listed = with_notes(entry.listed(), entry.description(), &notes);
            view.listed.insert(entry.client_name().to_owned(), listed);
        }
        view
    }

    /// Returns the `tools/list` object of a tool, with its notes; `None` if the toolset does not
    /// have the tool.
    #[must_use]
    pub fn listed(&self, client_name: &str) -> Option<&Bytes> {
        self.listed.get(client_name)
    }

    /// Returns the tools of the toolset that are not there.
    #[must_use]
    pub fn missing(&self) -> &[ToolRef] {
        &self.missing
    }
}

/// Returns a definition with notes in its description, and no other byte changed.
fn with_notes(listed: &Bytes, description: Option<&str>, notes: &[&Note]) -> Bytes {
    let changed = || -> Option<String> {
        let text = std::str::from_utf8(listed)
            .ok()
            .filter(|_| !notes.is_empty())?;
        let changed = rewrite(text, &[&["description"]], |_, own| {
            hydrate(Some(own), notes)
        });
        if changed.is_some() {
            return changed;
        }
        let members = Members::read(text).ok()?;
        if description.is_some() || members.last("description").is_some() {
            return None;
        }
        let (_, rest) = text.split_once('{')?;
        // it has a name at least
        Some(format!(
            "{{\"description\":{},{rest}",
            Value::from(hydrate(None, notes))
        ))
    };
    changed().map_or_else(|| listed.clone(), Bytes::from)
}
