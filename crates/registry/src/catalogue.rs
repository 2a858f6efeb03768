//! An immutable snapshot of all tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{Method, ReplicaSetId, ServerId, Tool, ToolName, nest_ours, similar};
use serde_json::value::RawValue;

use crate::names::SEPARATORS;
use crate::rewrite::{Path, rewrite};
use crate::shown::Shown;
use crate::uri;

/// Where a definition has names that clients see: its own, and the URI of its user interface ([MCP
/// Apps](https://github.com/modelcontextprotocol/ext-apps), in its present and first form).
const NAMED: &[Path<'_>] = &[
    &["name"],
    &["_meta", "ui", "resourceUri"],
    &["_meta", "ui/resourceUri"],
];

/// One tool as clients see it.
#[derive(Debug)]
pub struct Entry {
    tool: Arc<Tool>,
    client_name: Arc<str>,
    /// Its other names: `set.tool`, `set::tool`, `set__tool`, and `prefix__tool` where clients see
    /// a changed name.
    aliases: Vec<Arc<str>>,
    listed: Bytes,
    /// What the operator changes of it.
    shown: Option<Shown>,
}

impl Entry {
    /// Offers a tool under the name that clients see.
    ///
    /// # Errors
    ///
    /// The parser's error if its definition cannot be changed.
    pub(crate) fn new(
        tool: &Arc<Tool>,
        prefix: Option<&str>,
        client_name: &str,
        shown: Option<&Shown>,
    ) -> Result<Self, serde_json::Error> {
        let raw = match shown {
            Some(shown) => shown.apply(&tool.definition.raw)?,
            None => tool.definition.raw.clone(),
        };
        let definition: &RawValue = serde_json::from_slice(&raw)?;
        let renamed = rewrite(definition.get(), NAMED, |place, own| {
            match (place, prefix) {
                ("name", _) => client_name.to_owned(),
                (_, Some(prefix)) => uri::with_prefix(own, prefix),
                (_, None) => own.to_owned(),
            }
        });
        let renamed = renamed.map_or_else(|| raw.clone(), Bytes::from);
        let alias = |separator| format!("{}{separator}{}", tool.set(), tool.name());
        let with_prefix = prefix.map(|prefix| format!("{prefix}__{}", tool.name()));
        let aliases = SEPARATORS.into_iter().map(alias).chain(with_prefix);
        Ok(Self {
            aliases: aliases.map(Arc::from).collect(),
            tool: tool.clone(),
            client_name: client_name.into(),
            listed: nest_ours(&renamed)?.unwrap_or(renamed),
            shown: shown.cloned(),
        })
    }

    /// Returns the tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// Returns the name that clients see.
    #[must_use]
    pub fn client_name(&self) -> &str {
        &self.client_name
    }

    /// Returns the tool's `tools/list` object: the server's own bytes, but for the name and for
    /// members of its `_meta` under keys of ours, which are [kept apart](callward_core::nest_ours),
    /// and for what the operator [changes](crate::SetOptions::shown).
    #[must_use]
    pub fn listed(&self) -> &Bytes {
        &self.listed
    }

    /// Returns the arguments that the tool gets for those of a call: with the ones that are
    /// [fixed](Shown::fixed).
    ///
    /// # Errors
    ///
    /// What is wrong with the call: it sets a fixed argument to another value, or its arguments are
    /// not a JSON object.
    pub fn arguments(&self, given: Bytes) -> Result<Bytes, String> {
        match &self.shown {
            Some(shown) => shown.complete(given),
            None => Ok(given),
        }
    }
}

/// A tool that is listed or configured, and not offered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refusal {
    /// The server that listed it; the first of its set, if none did.
    pub server: ServerId,
    /// Its name.
    pub tool: ToolName,
    /// Why it is not offered.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn new(server: &ServerId, tool: &ToolName, reason: impl Into<String>) -> Self {
        Self {
            server: server.clone(),
            tool: tool.clone(),
            reason: reason.into(),
        }
    }
}

/// Tools by each of their names.
pub(crate) type Names = HashMap<Arc<str>, Arc<Entry>, foldhash::quality::RandomState>;

/// The names of the tools that one server lists.
pub(crate) type ToolNames = HashSet<ToolName, foldhash::quality::RandomState>;

/// An immutable snapshot of all tools. Snapshots with the same generation are the same.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub(crate) generation: u64,
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) names: Names,
    /// In the order of the sets, the methods other than `tools/call` that each answers.
    pub(crate) methods: Vec<Arc<Entry>>,
    /// The same, by set.
    pub(crate) methods_of: HashMap<ReplicaSetId, Vec<Arc<Entry>>>,
    pub(crate) prefixes: HashMap<ReplicaSetId, String>,
    /// The set of each prefix.
    pub(crate) prefixed: HashMap<String, ReplicaSetId>,
    pub(crate) offers: HashMap<ServerId, Arc<ToolNames>, foldhash::quality::RandomState>,
    pub(crate) refused: Vec<Refusal>,
}

impl Catalogue {
    /// Returns the number of this snapshot; it grows with each change.
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

    /// Returns the tool of each method other than `tools/call` that each set answers, in the order
    /// of the sets. Their names are `set.method`; [`find`](Self::find) does not find them.
    #[must_use]
    pub fn methods(&self) -> &[Arc<Entry>] {
        &self.methods
    }

    /// Finds a tool as [`find`](Self::find) does, or a method by its name, `set.method`.
    #[must_use]
    pub fn find_any(&self, name: &str) -> Option<&Arc<Entry>> {
        let mut methods = self.methods.iter();
        let found = self.find(name);
        found.or_else(|| methods.find(|entry| *entry.client_name == *name))
    }

    /// Returns what precedes `__` in the names that clients see of a set; `None` if they are the
    /// set's own.
    #[must_use]
    pub fn prefix(&self, set: &ReplicaSetId) -> Option<&str> {
        self.prefixes.get(set).map(String::as_str)
    }

    /// Returns the tools of the [methods](Self::methods) that a set answers.
    #[must_use]
    pub fn methods_of(&self, set: &ReplicaSetId) -> &[Arc<Entry>] {
        self.methods_of.get(set).map_or(&[], Vec::as_slice)
    }

    /// Returns the set whose [prefix](Self::prefix) a name has that clients see, and its own name.
    #[must_use]
    pub fn owner_of_name<'a>(&self, name: &'a str) -> Option<(&ReplicaSetId, &'a str)> {
        let mut ends = name.match_indices("__").map(|(at, _)| name.split_at(at));
        ends.find_map(|(prefix, own)| Some((self.prefixed.get(prefix)?, own.get(2..)?)))
    }

    /// Returns the set whose [prefix](Self::prefix) a URI has that clients see, and its own URI.
    #[must_use]
    pub fn owner_of_uri<'a>(&self, uri: &'a str) -> Option<(&ReplicaSetId, &'a str)> {
        let (own, prefix) = uri::split(uri)?;
        Some((self.prefixed.get(prefix)?, own))
    }

    /// Returns `true` if this server lists the tool.
    #[must_use]
    pub fn offers(&self, server: &ServerId, tool: &ToolName) -> bool {
        let tools = self.offers.get(server);
        tools.is_some_and(|tools| tools.contains(tool))
    }

    /// Returns how many tools of a server are offered.
    #[must_use]
    pub fn offered_by(&self, server: &ServerId) -> usize {
        let is_tool = |name: &&ToolName| Method::by_name(name.as_str()).is_none();
        let offers = self.offers.get(server);
        offers.map_or(0, |tools| tools.iter().filter(is_tool).count())
    }

    /// Returns the tools that are listed or configured, but not offered.
    #[must_use]
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Returns up to three names that clients may have meant by an unknown one: those of tools
    /// whose own name is similar to it, or to what follows its prefix.
    #[must_use]
    pub fn similar(&self, name: &str) -> Vec<&str> {
        let tail = name.rsplit(['.', ':']).next().unwrap_or(name);
        let tail = tail.rsplit_once("__").map_or(tail, |(_, tail)| tail);
        let near = similar(tail, &self.entries, |entry| entry.tool.name().as_str());
        near.into_iter().map(|entry| entry.client_name()).collect()
    }

    /// Adds a tool under the name clients see.
    pub(crate) fn push(&mut self, entry: Arc<Entry>) {
        self.names.insert(entry.client_name.clone(), entry.clone());
        self.entries.push(entry);
    }

    /// Adds the aliases of each tool. A name that clients see beats an alias.
    pub(crate) fn index(&mut self, is_alias: impl Fn(&str, &Tool) -> bool) {
        for entry in &self.entries {
            for alias in &entry.aliases {
                if !self.names.contains_key(alias) && is_alias(alias, &entry.tool) {
                    self.names.insert(alias.clone(), entry.clone());
                }
            }
        }
    }

    /// Returns the entry of this instance of a tool under this name.
    pub(crate) fn same(
        &self,
        tool: &Arc<Tool>,
        name: &str,
        shown: Option<&Shown>,
    ) -> Option<Arc<Entry>> {
        let entry = self.names.get(name)?;
        let is_same = Arc::ptr_eq(&entry.tool, tool)
            && *entry.client_name == *name
            && entry.shown.as_ref() == shown;
        is_same.then(|| entry.clone())
    }
}
