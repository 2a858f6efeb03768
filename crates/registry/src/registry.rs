//! Merges listings into catalogues.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_core::{Instances, Method, ReplicaSetId, ServerId, ToolDefinition, ToolName};
use parking_lot::Mutex;

use crate::catalogue::{Catalogue, Entry, Names, Refusal};
use crate::listing::Listing;
use crate::names::{KeptName, NameTable, Starts};
use crate::set::{Set, share, size_of};
use crate::{SetOptions, names, verify};

/// The changes of one registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Tools that are new in their set.
    pub added: Vec<ToolName>,
    /// Tools whose definition, plan, rules over arguments or instances differ.
    pub changed: Vec<ToolName>,
    /// Tools that no server of the set lists any more.
    pub removed: Vec<ToolName>,
    /// Tools of any set that are not offered now, and were not refused before.
    pub refused: Vec<Refusal>,
    /// Tools of any set that got a spare name, as theirs belongs to another tool.
    pub renamed: Vec<KeptName>,
    /// A tool that waited for its name is offered now.
    pub named: bool,
}

impl Changes {
    /// Returns `true` if clients see no difference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty() && !self.named
    }
}

/// Merges the lists of servers into a [`Catalogue`]. Shared by reference; readers never wait.
#[derive(Debug, Default)]
pub struct Registry {
    current: ArcSwap<Catalogue>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sets: BTreeMap<ReplicaSetId, Set>,
    /// The sets in the order of their first mention, in which they choose names.
    order: Vec<ReplicaSetId>,
    names: NameTable,
}

impl Registry {
    /// Makes an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the current snapshot.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.current.load_full()
    }

    /// Returns a short borrow of the current snapshot, without a shared reference count.
    #[must_use]
    pub fn peek(&self) -> arc_swap::Guard<Arc<Catalogue>> {
        self.current.load()
    }

    /// Sets the options of a set, and reads the lists of its servers again if they are others.
    pub fn change_options(&self, set: &ReplicaSetId, options: SetOptions) -> Changes {
        let mut state = self.state.lock();
        let entry = state.set(set.clone());
        let is_same = *entry.options == options;
        entry.options = Arc::new(options);
        if is_same || entry.servers.is_empty() {
            return Changes::default();
        }
        for (server, listing) in &mut entry.servers {
            let definitions = std::mem::take(&mut listing.definitions);
            *listing = Listing::read(set, server, definitions, listing.instances, &entry.options);
        }
        let changes = entry.merge(set);
        self.publish(&mut state, changes)
    }

    /// Replaces the list of a server, and how it divides its state among callers.
    /// [`SetOptions::instances`] beats `instances`.
    pub fn register(
        &self,
        set: &ReplicaSetId,
        server: &ServerId,
        definitions: Vec<ToolDefinition>,
        instances: Instances,
    ) -> Changes {
        let mut state = self.state.lock();
        let entry = state.set(set.clone());
        entry.expected.remove(server);
        let listing = Listing::read(set, server, definitions, instances, &entry.options);
        match entry.servers.iter_mut().find(|(known, _)| known == server) {
            Some((_, old)) => *old = listing,
            None => entry.servers.push((server.clone(), listing)),
        }
        let changes = entry.merge(set);
        self.publish(&mut state, changes)
    }

    /// Announces that a server will list its tools. Until it [registers](Self::register) them,
    /// [fails](Self::unexpect) or is removed, later sets get no new names without a prefix: the set
    /// that was mentioned first chooses first.
    pub fn expect(&self, set: &ReplicaSetId, server: &ServerId) {
        let mut state = self.state.lock();
        state.set(set.clone()).expected.insert(server.clone());
    }

    /// Reports that a server failed to list its tools: names no longer wait for it.
    pub fn unexpect(&self, set: &ReplicaSetId, server: &ServerId) -> Changes {
        let mut state = self.state.lock();
        let entry = state.sets.get_mut(set);
        if entry.is_some_and(|entry| entry.expected.remove(server)) {
            return self.publish(&mut state, Changes::default());
        }
        Changes::default()
    }

    /// Removes a server and its tools, except those that other servers of the set list. The set
    /// keeps its options: see [`forget`](Self::forget).
    pub fn remove(&self, set: &ReplicaSetId, server: &ServerId) -> Changes {
        let mut state = self.state.lock();
        let Some(entry) = state.sets.get_mut(set) else {
            return Changes::default();
        };
        entry.expected.remove(server);
        entry.servers.retain(|(known, _)| known != server);
        let changes = entry.merge(set);
        self.publish(&mut state, changes)
    }

    /// Removes a set, with its servers and options.
    pub fn forget(&self, set: &ReplicaSetId) -> Changes {
        let mut state = self.state.lock();
        let Some(gone) = state.sets.remove(set) else {
            return Changes::default();
        };
        let mut removed: Vec<_> = gone.tools.iter().map(|tool| tool.name().clone()).collect();
        removed.sort_unstable();
        state.order.retain(|known| known != set);
        state.names.forget(set);
        let changes = Changes {
            removed,
            ..Changes::default()
        };
        self.publish(&mut state, changes)
    }

    /// Restores the names of an earlier run, before servers register. A tool keeps its name while
    /// no server lists it.
    pub fn keep_names(&self, names: impl IntoIterator<Item = KeptName>) {
        self.state.lock().names.keep(names);
    }

    /// Returns the names of all tools, of tools that are not listed now too, in any order.
    #[must_use]
    pub fn kept_names(&self) -> Vec<KeptName> {
        self.state.lock().names.kept()
    }

    fn publish(&self, state: &mut State, changes: Changes) -> Changes {
        let last = self.current.load();
        let next = state.catalogue(&last);
        let known: HashSet<_> = last.refused.iter().collect();
        let refused = next.refused.iter().filter(|tool| !known.contains(tool));
        let refused: Vec<_> = refused.cloned().collect();
        log(&refused);
        let changes = Changes {
            refused,
            renamed: std::mem::take(&mut state.names.renamed),
            named: last
                .refused
                .iter()
                .any(|tool| tool.reason == WAITS && !next.refused.contains(tool)),
            ..changes
        };
        self.current.store(Arc::new(next));
        changes
    }
}

/// The largest size of all definitions together, in bytes: clients get them in one list.
const MAX_LISTED: usize = 16 << 20;

const WAITS: &str =
    "waits for its name until the servers before its own have listed their tools or failed to";

/// How many refusals of one registration are logged one by one.
const LOGGED: usize = 10;

/// Logs tools that are refused now and were not before.
fn log(refused: &[Refusal]) {
    let refused = refused.iter().filter(|tool| tool.reason != WAITS);
    let more = refused.clone().skip(LOGGED).count();
    for Refusal {
        server,
        tool,
        reason,
    } in refused.take(LOGGED)
    {
        tracing::warn!(%server, %tool, reason, "tool refused");
    }
    if more > 0 {
        tracing::warn!("{more} more tools refused");
    }
}

/// The names of a set's tools, and whether its other tools get names later.
type Assigned = (HashMap<ToolName, Arc<str>>, bool);

impl State {
    fn set(&mut self, set: ReplicaSetId) -> &mut Set {
        if !self.sets.contains_key(&set) {
            self.order.push(set.clone());
        }
        self.sets.entry(set).or_default()
    }

    /// Names the tools of each set, in the order of the sets.
    fn assign_names(&mut self, starts: &Starts) -> HashMap<ReplicaSetId, Assigned> {
        let mut assigned = HashMap::with_capacity(self.order.len());
        let mut is_expecting = false;
        for id in &self.order {
            if let Some(set) = self.sets.get(id) {
                let own = set.options.prefix.as_deref();
                let waits = is_expecting && own.is_none();
                let names = self
                    .names
                    .assign(id, &set.options, &set.tools, starts, waits);
                assigned.insert(id.clone(), (names, waits));
                is_expecting |= own.is_none() && !set.expected.is_empty();
            }
        }
        assigned
    }

    /// Makes the next snapshot. Entries that did not change are reused: with many servers, a
    /// registration changes few.
    fn catalogue(&mut self, last: &Catalogue) -> Catalogue {
        let mut catalogue = Catalogue {
            generation: last.generation + 1,
            entries: Vec::with_capacity(last.entries.len()),
            names: Names::with_capacity_and_hasher(last.names.len(), Default::default()),
            ..Catalogue::default()
        };
        let mut starts = Starts::default();
        for (id, set) in &self.sets {
            let prefix = set.options.prefix.as_ref();
            starts.add(id, prefix.map(String::as_str));
            if let Some(prefix) = prefix {
                catalogue.prefixes.insert(id.clone(), prefix.clone());
                catalogue.prefixed.insert(prefix.clone(), id.clone());
            }
        }
        let share = share(self.sets.values().map(Set::size), MAX_LISTED);
        let mut assigned = self.assign_names(&starts);
        for (set, entry) in &mut self.sets {
            let (names, waits) = assigned.remove(set).unwrap_or_default();
            verify::bind(&mut entry.tools, &entry.pairs, &names);
            let mut size = 0;
            for tool in &entry.tools {
                if tool.definition.method != Method::CallTool {
                    let name = format!("{set}.{}", tool.name());
                    if let Ok(offered) = Entry::new(tool, None, &name, None).map(Arc::new) {
                        let of_set = catalogue.methods_of.entry(set.clone()).or_default();
                        of_set.push(offered.clone());
                        catalogue.methods.push(offered);
                    }
                    continue;
                }
                let shown = entry.options.shown.get(tool.name());
                if shown.is_some_and(|shown| shown.hidden) {
                    continue;
                }
                size += size_of(tool);
                let name = match names.get(tool.name()) {
                    _ if size > share => Err(format!(
                        "all tools together are larger than {MAX_LISTED} bytes; the longest lists \
                         lose their last tools"
                    )),
                    Some(name) => Ok(name),
                    None if waits => Err(WAITS.to_owned()),
                    None => Err(format!(
                        "the name `{}` belongs to another tool; give its set another prefix",
                        names::spare_name(set, tool)
                    )),
                };
                let name = match name {
                    Ok(name) => name,
                    Err(reason) => {
                        let server = entry.servers.first().map(|(server, _)| server);
                        let refusal = |server| Refusal::new(server, tool.name(), reason);
                        catalogue.refused.extend(server.map(refusal));
                        continue;
                    }
                };
                let prefix = entry.options.prefix.as_deref();
                let offered = || Entry::new(tool, prefix, name, shown).map(Arc::new);
                match last.same(tool, name, shown).map_or_else(offered, Ok) {
                    Ok(entry) => catalogue.push(entry),
                    Err(error) => {
                        tracing::error!(%set, tool = %tool.name(), %error, "cannot be renamed");
                    }
                }
            }
            for (server, listing) in &entry.servers {
                catalogue
                    .offers
                    .insert(server.clone(), listing.names.clone());
                catalogue.refused.extend(listing.refused.iter().cloned());
            }
            catalogue.refused.extend(entry.unlisted());
        }
        catalogue.index(|alias, tool| self.names.is_alias(alias, tool, &starts));
        catalogue
    }
}
