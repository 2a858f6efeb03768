//! The names that clients see. Each stays with the tool that got it first.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{SetOptions, Shown};
use callward_core::{FingerprintKey, Method, ReplicaSetId, Tool, ToolDefinition, ToolName};

/// The longest name with a prefix: several model APIs accept no more, and only ASCII letters,
/// digits, `_` and `-`.
const MAX_NAME_LEN: usize = 64;

/// How many names and counts a set keeps for tools that it no longer lists. With more, it loses all
/// of those.
pub(crate) const MAX_UNLISTED: usize = 4096;

/// The separators of set and tool in [`Catalogue::find`](crate::Catalogue::find).
pub(crate) const SEPARATORS: [&str; 3] = [".", "::", "__"];

/// A name that clients know, and its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptName {
    /// The set that lists the tool.
    pub set: ReplicaSetId,
    /// The tool's own name.
    pub tool: ToolName,
    /// The name that clients see.
    pub name: Arc<str>,
}

impl KeptName {
    /// Names a tool.
    #[must_use]
    pub fn new(set: ReplicaSetId, tool: ToolName, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self { set, tool, name }
    }
}

/// What may precede a separator in the names of a set's tools: the set's name and its prefix.
#[derive(Debug, Default)]
pub(crate) struct Starts(HashMap<Arc<str>, Vec<ReplicaSetId>, foldhash::quality::RandomState>);

impl Starts {
    pub(crate) fn add(&mut self, set: &ReplicaSetId, prefix: Option<&str>) {
        for start in [Some(set.as_str()), prefix].into_iter().flatten() {
            self.0.entry(start.into()).or_default().push(set.clone());
        }
    }

    /// Returns the set that clients read a name as one of: the only one with its longest start.
    pub(crate) fn owner(&self, name: &str) -> Option<&ReplicaSetId> {
        let ends = name.rmatch_indices(['.', ':', '_']).map(|(at, _)| at);
        let ends = ends.filter(|at| SEPARATORS.iter().any(|mark| name[*at..].starts_with(mark)));
        let mut owners = ends.filter_map(|end| self.0.get(&name[..end]));
        let (first, others) = owners.next()?.split_first()?;
        others.iter().all(|other| other == first).then_some(first)
    }

    /// Returns the lengths of a name's longest starts: this set's, and that of other sets. A client
    /// reads the name as one of the set with the longer start.
    fn longest(&self, name: &str, set: &ReplicaSetId) -> (Option<usize>, Option<usize>) {
        let is_end = |at: &usize| SEPARATORS.iter().any(|mark| name[*at..].starts_with(mark));
        let ends = name.char_indices().map(|(at, _)| at).filter(is_end);
        let (mut own, mut others) = (None, None);
        for end in ends {
            for owner in self.0.get(&name[..end]).into_iter().flatten() {
                match owner == set {
                    true => own = Some(end),
                    false => others = Some(end),
                }
            }
        }
        (own, others)
    }
}

/// The names of tools. A tool that is no longer listed keeps its name, so that no other server gets
/// its calls.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    owners: HashMap<Arc<str>, (ReplicaSetId, ToolName)>,
    names: HashMap<ReplicaSetId, HashMap<ToolName, Arc<str>>>,
    /// Tools that got a spare name since it was emptied.
    pub(crate) renamed: Vec<KeptName>,
}

impl NameTable {
    /// Returns a name for each tool of a set, except tools whose names are taken and, if the set
    /// `waits`, tools without a name yet.
    pub(crate) fn assign(
        &mut self,
        set: &ReplicaSetId,
        options: &SetOptions,
        tools: &[Arc<Tool>],
        starts: &Starts,
        waits: bool,
    ) -> HashMap<ToolName, Arc<str>> {
        let mut assigned = HashMap::with_capacity(tools.len());
        for tool in tools
            .iter()
            .filter(|tool| tool.definition.method == Method::CallTool)
        {
            let own = client_name(options, &tool.definition);
            let spare = spare_name(set, tool);
            let kept = self.names.get(set).and_then(|names| names.get(tool.name()));
            if let Some(kept) = kept.filter(|kept| ***kept == *own || ***kept == *spare) {
                assigned.insert(tool.name().clone(), kept.clone());
                continue;
            }
            if waits {
                continue;
            }
            self.release(set, tool.name());
            let is_free = |name: &&String| {
                let (own, others) = starts.longest(name, set);
                !self.owners.contains_key(name.as_str()) && others <= own
            };
            let Some(name) = [&own, &spare].into_iter().find(is_free) else {
                continue;
            };
            let is_renamed = *name != own;
            let name = Arc::<str>::from(name.as_str());
            if is_renamed {
                tracing::warn!(
                    %set, tool = %tool.name(), taken = own, %name,
                    "the name belongs to another tool; this one gets a name of its own"
                );
                let renamed = KeptName::new(set.clone(), tool.name().clone(), name.clone());
                self.renamed.push(renamed);
            }
            let owner = (set.clone(), tool.name().clone());
            self.owners.insert(name.clone(), owner);
            let names = self.names.entry(set.clone()).or_default();
            names.insert(tool.name().clone(), name.clone());
            assigned.insert(tool.name().clone(), name);
        }
        let kept = self.names.get(set).map_or(0, HashMap::len);
        if kept > assigned.len() + MAX_UNLISTED {
            self.forget(set);
            for (tool, name) in &assigned {
                let owner = (set.clone(), tool.clone());
                self.owners.insert(name.clone(), owner);
            }
            self.names.insert(set.clone(), assigned.clone());
        }
        assigned
    }

    /// Returns the names of a set's tools that are not among these.
    pub(crate) fn reserved(
        &self,
        set: &ReplicaSetId,
        is_offered: impl Fn(&ToolName) -> bool,
    ) -> Vec<Arc<str>> {
        let names = self.names.get(set).into_iter().flatten();
        let reserved = names.filter(|(tool, _)| !is_offered(tool));
        reserved.map(|(_, name)| name.clone()).collect()
    }

    /// Returns the sets that have names.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &ReplicaSetId> {
        self.names.keys()
    }

    /// Restores names of an earlier run. Of two tools with the same name, the first gets it.
    pub(crate) fn keep(&mut self, names: impl IntoIterator<Item = KeptName>) {
        for KeptName { set, tool, name } in names {
            self.release(&set, &tool);
            if self.owners.contains_key(&name) {
                continue;
            }
            self.owners
                .insert(name.clone(), (set.clone(), tool.clone()));
            self.names.entry(set).or_default().insert(tool, name);
        }
    }

    /// Returns all names.
    pub(crate) fn kept(&self) -> Vec<KeptName> {
        let kept = self.owners.iter().map(|(name, (set, tool))| KeptName {
            set: set.clone(),
            tool: tool.clone(),
            name: name.clone(),
        });
        kept.collect()
    }

    /// Frees the names of a removed set.
    pub(crate) fn forget(&mut self, set: &ReplicaSetId) {
        for name in self.names.remove(set).unwrap_or_default().values() {
            self.owners.remove(name);
        }
    }

    fn release(&mut self, set: &ReplicaSetId, tool: &ToolName) {
        let names = self.names.get_mut(set);
        if let Some(name) = names.and_then(|names| names.remove(tool)) {
            self.owners.remove(&name);
        }
    }
}

/// Returns the name of a tool whose own name is taken.
pub(crate) fn spare_name(set: &ReplicaSetId, tool: &Tool) -> String {
    accepted(&format!("{set}__{}", tool.name()))
}

/// Returns the name that clients see of a tool, unless another one has it.
pub(crate) fn client_name(options: &SetOptions, tool: &ToolDefinition) -> String {
    let shown = Shown::of(options, tool);
    let name = shown.as_ref().and_then(|shown| shown.name.as_deref());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        return accepted(name);
    }
    match &options.prefix {
        Some(prefix) => accepted(&format!("{prefix}__{}", tool.name)),
        // without a prefix the gateway stands in for the server, and keeps its names
        None => tool.name.to_string(),
    }
}

/// Replaces characters that model APIs refuse, and cuts a name that is too long. A changed name
/// ends with its digest, so that it stays unique and stable.
fn accepted(name: &str) -> String {
    let is_accepted = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if name.len() <= MAX_NAME_LEN && name.chars().all(is_accepted) {
        return name.to_owned();
    }
    let digest = FingerprintKey::fixed().bytes(name.as_bytes()).to_string();
    let replaced = name
        .chars()
        .map(|char| if is_accepted(char) { char } else { '_' });
    let kept: String = replaced.take(MAX_NAME_LEN - 9).collect();
    format!("{kept}_{}", &digest[..8])
}
