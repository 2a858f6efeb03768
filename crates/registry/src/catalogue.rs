//! One immutable view of all tools.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use tollgate_core::{ReplicaSetId, ServerId, Tool, ToolName};

/// One tool as clients see it.
#[derive(Debug)]
pub struct Entry {
    tool: Arc<Tool>,
    client_name: Arc<str>,
    listed: Bytes,
}

impl Entry {
    pub(crate) fn new(tool: Arc<Tool>, client_name: Arc<str>, listed: Bytes) -> Self {
        Self {
            tool,
            client_name,
            listed,
        }
    }

    /// Returns the tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// Returns the name clients call it by.
    #[must_use]
    pub fn client_name(&self) -> &str {
        &self.client_name
    }

    /// Returns the tool's `tools/list` object: the server's own bytes, but for the name.
    #[must_use]
    pub fn listed(&self) -> &Bytes {
        &self.listed
    }
}

/// A listed tool that is not offered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The server that listed it.
    pub server: ServerId,
    /// Its name.
    pub tool: ToolName,
    /// What is wrong with it.
    pub reason: String,
}

/// One immutable view of all tools. Two views with the same generation are the same view.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub(crate) generation: u64,
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) names: HashMap<Box<str>, Arc<Entry>>,
    pub(crate) offers: BTreeMap<ServerId, HashSet<ToolName>>,
    pub(crate) refused: Vec<Refusal>,
}

impl Catalogue {
    /// Returns the number of this view; it grows with each change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns all tools, in the order clients see them: by set, then as its servers list them.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Finds a tool by the name clients see, or as `set.tool`, `set::tool` or `set__tool`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Entry>> {
        self.names.get(name)
    }

    /// Says whether this server lists the tool.
    #[must_use]
    pub fn offers(&self, server: &ServerId, tool: &ToolName) -> bool {
        self.offers
            .get(server)
            .is_some_and(|tools| tools.contains(tool))
    }

    /// Returns how many tools a server lists; refused ones are not counted.
    #[must_use]
    pub fn offered_by(&self, server: &ServerId) -> usize {
        self.offers.get(server).map_or(0, HashSet::len)
    }

    /// Returns the tools of one replica set, in the order clients see them.
    pub fn in_set<'a>(&'a self, set: &'a ReplicaSetId) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.entries
            .iter()
            .filter(move |entry| entry.tool.set() == set)
    }

    /// Returns the tools that are listed but not offered, and why.
    #[must_use]
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Returns up to three names clients may have meant by one that is not here.
    #[must_use]
    pub fn similar(&self, name: &str) -> Vec<&str> {
        let tail = name.rsplit(['.', ':']).next().unwrap_or(name);
        let tail = tail.rsplit_once("__").map_or(tail, |(_, tail)| tail);
        self.entries
            .iter()
            .map(|entry| entry.client_name())
            .filter(|known| !tail.is_empty() && (known.contains(tail) || name.contains(known)))
            .take(3)
            .collect()
    }
}
