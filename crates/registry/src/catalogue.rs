//! An immutable snapshot of all tools.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use callward_core::{Method, ReplicaSetId, ServerId, Tool, ToolName, nest_ours, similar};
use serde_json::value::RawValue;

use crate::names::{SEPARATORS, Starts};
use crate::part::Part;
use crate::pins::ToolChange;
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
    listed: Bytes,
    /// What the operator and plugins change of it.
    shown: Option<Box<Shown>>,
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
        client_name: Arc<str>,
        shown: Option<&Shown>,
    ) -> Result<Self, serde_json::Error> {
        let raw = match shown {
            Some(shown) => shown.apply(&tool.definition.raw)?,
            None => tool.definition.raw.clone(),
        };
        let definition: &RawValue = serde_json::from_slice(&raw)?;
        let renamed = rewrite(definition.get(), NAMED, |place, own| {
            match (place, prefix) {
                ("name", _) => client_name.to_string(),
                (_, Some(prefix)) => uri::with_prefix(own, prefix),
                (_, None) => own.to_owned(),
            }
        });
        let renamed = renamed.map_or_else(
            || raw.clone(),
            |it| it.into_boxed_str().into_boxed_bytes().into(),
        );
        Ok(Self {
            tool: tool.clone(),
            client_name,
            listed: nest_ours(&renamed)?.unwrap_or(renamed),
            shown: shown.cloned().map(Box::new),
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
    /// and for what the operator [changes](crate::SetOptions::shown), or a plugin.
    #[must_use]
    pub fn listed(&self) -> &Bytes {
        &self.listed
    }

    /// Returns the description that clients see.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        let shown = self.shown().and_then(|shown| shown.description.as_deref());
        shown.or(self.tool.definition.description.as_deref())
    }

    /// Returns what the operator and plugins change of it.
    pub(crate) fn shown(&self) -> Option<&Shown> {
        self.shown.as_deref()
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

/// Tools by the names that clients see.
pub(crate) type Names = HashMap<Arc<str>, Arc<Entry>, foldhash::quality::RandomState>;

/// The tools of each set, in the order of the sets.
pub(crate) type Parts = BTreeMap<ReplicaSetId, Arc<Part>>;

/// The names of the tools that one server lists.
pub(crate) type ToolNames = HashSet<ToolName, foldhash::quality::RandomState>;

/// An immutable snapshot of all tools. Snapshots with the same generation are the same.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub(crate) generation: u64,
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) names: Names,
    /// The tools of each set, by set and in the order of the sets.
    pub(crate) parts: Parts,
    /// In the order of the sets, the methods other than `tools/call` that each answers.
    pub(crate) methods: Vec<Arc<Entry>>,
    pub(crate) starts: Starts,
    /// Names of tools that are not offered now: they lead to no other tool.
    pub(crate) reserved: HashSet<Arc<str>, foldhash::quality::RandomState>,
    pub(crate) prefixes: HashMap<ReplicaSetId, String>,
    /// The set of each prefix.
    pub(crate) prefixed: HashMap<String, ReplicaSetId>,
    pub(crate) offers: HashMap<ServerId, Arc<ToolNames>, foldhash::quality::RandomState>,
    pub(crate) refused: Vec<Refusal>,
    /// The rank of each tool by name; made when a search first sorts by it.
    pub(crate) name_ranks: OnceLock<Vec<u32>>,
    pub(crate) held: Vec<Arc<ToolChange>>,
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
        self.names.get(name).or_else(|| self.find_alias(name))
    }

    /// Finds a tool as `set.tool`, `set::tool`, `set__tool`, or as `prefix__tool` where clients see
    /// a changed name. A name that a tool of another set could have leads nowhere.
    fn find_alias(&self, name: &str) -> Option<&Arc<Entry>> {
        let set = self.starts.owner(name)?;
        let part = self.parts.get(set)?;
        let of_set = SEPARATORS.iter().map(|mark| (set.as_str(), *mark));
        let of_prefix = self.prefix(set).map(|prefix| (prefix, "__"));
        let mut starts = of_set.chain(of_prefix);
        let found = starts
            .find_map(|(start, mark)| part.find(name.strip_prefix(start)?.strip_prefix(mark)?));
        found.filter(|_| !self.reserved.contains(name))
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
        self.parts.get(set).map_or(&[], |part| &part.methods)
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

    /// Returns the definitions that wait for approval: none of them is offered.
    #[must_use]
    pub fn held(&self) -> &[Arc<ToolChange>] {
        &self.held
    }

    /// Finds a definition that waits for approval by a name that its tool would have.
    #[must_use]
    pub fn find_held(&self, name: &str) -> Option<&Arc<ToolChange>> {
        self.held.iter().find(|held| {
            let (set, tool) = (held.set.as_str(), held.tool.as_str());
            let prefix = self.prefix(&held.set).unwrap_or(set);
            let rest = [set, prefix]
                .into_iter()
                .find_map(|start| name.strip_prefix(start));
            let of_set = rest.and_then(|rest| {
                SEPARATORS
                    .into_iter()
                    .find_map(|separator| rest.strip_prefix(separator))
            });
            name == held.name || name == tool || of_set == Some(tool)
        })
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

    /// Adds the parts of all sets, in their order. Names are those of the last snapshot, with the
    /// changed parts' in place of the old ones.
    pub(crate) fn fill(&mut self, parts: Parts, last: &Self) {
        self.names.clone_from(&last.names);
        let is_same = |id: &ReplicaSetId, part: &Arc<Part>, of: &Parts| {
            of.get(id).is_some_and(|other| Arc::ptr_eq(other, part))
        };
        self.parts = parts;
        let gone = last.parts.iter();
        for (_, part) in gone.filter(|(id, part)| !is_same(id, part, &self.parts)) {
            for entry in &part.entries {
                self.names.remove(&entry.client_name);
            }
        }
        self.entries.reserve(last.entries.len());
        for (id, part) in &self.parts {
            self.entries.extend_from_slice(&part.entries);
            self.methods.extend_from_slice(&part.methods);
            self.offers.extend(part.servers.iter().cloned());
            self.refused.extend_from_slice(&part.refused);
            self.held.extend_from_slice(&part.held);
            self.reserved.extend(part.reserved.iter().cloned());
            if !is_same(id, part, &last.parts) {
                let named = part.entries.iter();
                self.names
                    .extend(named.map(|entry| (entry.client_name.clone(), entry.clone())));
            }
        }
    }
}
