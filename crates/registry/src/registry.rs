//! Merges listings into catalogues.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_core::{Instances, Observation, ReplicaSetId, ServerId, ToolDefinition, ToolName};
use parking_lot::Mutex;

use crate::SetOptions;
use crate::catalogue::{Catalogue, Refusal};
use crate::listing::Listing;
use crate::names::KeptName;
use crate::pins::{ApproveError, Held, ReviewOptions, ToolChange};
use crate::set::WAITS;
use crate::state::State;
use crate::suggest::{AcceptError, Suggestion};

/// The changes of one registration.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Definitions of any set that wait for approval, and did not before.
    pub held: Vec<Arc<ToolChange>>,
    /// Definitions that differ from those that were approved, and are approved now.
    pub followed: Vec<Arc<ToolChange>>,
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
        let is_shown_else = entry.options.shown != options.shown;
        entry.options = Arc::new(options);
        if is_same || entry.servers.is_empty() {
            return Changes::default();
        }
        let mut changes = state.read_again(set);
        changes.named |= is_shown_else;
        self.publish(&mut state, set, changes)
    }

    /// Returns the definitions that a server listed last, in order. May wait for a list that is
    /// registered.
    #[must_use]
    pub fn listed(&self, set: &ReplicaSetId, server: &ServerId) -> Vec<ToolDefinition> {
        let state = self.state.lock();
        let servers = state.sets.get(set).map_or(&[][..], |entry| &entry.servers);
        let listing = servers.iter().find(|(known, _)| known == server);
        let definitions = listing.into_iter().flat_map(|(_, it)| it.definitions());
        definitions.cloned().collect()
    }

    /// Sets which changes wait for approval, and what was approved, before servers register.
    pub fn review(&self, options: ReviewOptions) {
        self.state.lock().review = options;
    }

    /// Approves the definition of a tool that is [held](Catalogue::held) and has this digest, and
    /// offers it at once. May block on the [`PinStore`](crate::PinStore).
    ///
    /// # Errors
    ///
    /// [`ApproveError`]; then nothing has changed.
    pub fn approve(
        &self,
        set: &ReplicaSetId,
        tool: &ToolName,
        digest: &str,
    ) -> Result<Changes, ApproveError> {
        let mut state = self.state.lock();
        let servers = state.sets.get(set).map_or(&[][..], |entry| &entry.servers);
        let held = servers.iter().flat_map(|(_, listing)| &listing.held);
        let held: Vec<_> = held
            .filter(|held| held.change.tool == *tool)
            .cloned()
            .collect();
        let (set, tool) = (set.clone(), tool.clone());
        let Some(meant) = held.iter().find(|held| *held.change.digest == *digest) else {
            return Err(match held.first() {
                Some(Held { change, .. }) => {
                    let digest = change.digest.clone();
                    ApproveError::Changed { set, tool, digest }
                }
                None => ApproveError::NotHeld { set, tool },
            });
        };
        let pins = &mut state.review.pins;
        let old = pins.approve(&set, &tool, Some(meant.pin.clone()));
        if let Err(error) = state.save() {
            state.review.pins.approve(&set, &tool, old);
            return Err(error.into());
        }
        let mut changes = state.read_again(&set);
        changes.followed.push(meant.change.clone());
        Ok(self.publish(&mut state, &set, changes))
    }

    /// Returns what calls suggest now. Nothing of it applies before it is
    /// [accepted](Self::accept). May wait for a list that is registered.
    #[must_use]
    pub fn suggestions(&self) -> Vec<Suggestion> {
        self.state.lock().suggestions()
    }

    /// Applies the suggestion with this id: its hints count as the operator's for this definition
    /// of the tool, below those of [`SetOptions::overrides`]. May block on the
    /// [`PinStore`](crate::PinStore).
    ///
    /// # Errors
    ///
    /// [`AcceptError`]; then nothing has changed.
    pub fn accept(&self, id: &str) -> Result<(Suggestion, Changes), AcceptError> {
        let mut state = self.state.lock();
        let mut found = state.suggestions();
        found.retain(|suggestion| suggestion.id == id);
        let (Some(meant), true) = (found.pop(), found.is_empty()) else {
            return Err(AcceptError::Unknown);
        };
        let Suggestion { set, tool, .. } = &meant;
        let tools = state.sets.get(set).map_or(&[][..], |of| &of.tools);
        let definition = tools.iter().find(|known| known.name() == tool);
        let definition = definition.ok_or(AcceptError::Unknown)?.digest();
        let accepted = state.review.pins.accepted(set);
        let before = accepted.clone();
        let hints = match accepted.get(tool) {
            Some((of, hints)) if *of == definition => hints.merge(&meant.hints),
            _ => meant.hints.clone(),
        };
        accepted.insert(tool.clone(), (definition, hints));
        if let Err(error) = state.save() {
            *state.review.pins.accepted(set) = before;
            return Err(error.into());
        }
        let changes = state.read_again(set);
        let changes = self.publish(&mut state, set, changes);
        Ok((meant, changes))
    }

    /// Adds an observation of the definition of a tool with this [digest](callward_core::Tool), and
    /// reads the lists of its set again if there are any. Observations of another definition of the
    /// tool are dropped, and a tool whose definition is another one is not affected.
    pub fn observe(
        &self,
        set: &ReplicaSetId,
        tool: &ToolName,
        definition: u128,
        observation: Observation,
    ) -> Changes {
        let mut state = self.state.lock();
        let of_set = state.observed.entry(set.clone()).or_default();
        let (digest, seen) = of_set.entry(tool.clone()).or_default();
        if *digest != definition {
            (*digest, *seen) = (definition, Vec::new());
        }
        seen.retain(|known| known.field != observation.field);
        seen.push(observation);
        if state.sets.get(set).is_none_or(|it| it.servers.is_empty()) {
            return Changes::default();
        }
        let changes = state.read_again(set);
        self.publish(&mut state, set, changes)
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
        let was_expected = entry.expected.remove(server);
        let last = entry.servers.iter().find(|(known, _)| known == server);
        let is_same = |(_, last): &(_, Listing)| last.is_same(&definitions, instances);
        if last.is_some_and(is_same) && !was_expected {
            return Changes::default();
        }
        let last = last
            .map(|(_, last)| last.digests.clone())
            .unwrap_or_default();
        let (listing, followed) = state.read(set, server, definitions, instances, last);
        let entry = state.set(set.clone());
        match entry.servers.iter_mut().find(|(known, _)| known == server) {
            Some((_, old)) => *old = listing,
            None => entry.servers.push((server.clone(), listing)),
        }
        // what another server of the set lists may be looser than what is approved now
        let changes = match followed.is_empty() || entry.servers.len() < 2 {
            true => entry.merge(set),
            false => state.read_again(set),
        };
        let followed = followed.into_iter().chain(changes.followed).collect();
        let changes = Changes {
            followed,
            ..changes
        };
        self.publish(&mut state, set, changes)
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
            return self.publish(&mut state, set, Changes::default());
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
        self.publish(&mut state, set, changes)
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
        self.publish(&mut state, set, changes)
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

    fn publish(&self, state: &mut State, changed: &ReplicaSetId, changes: Changes) -> Changes {
        let last = self.current.load();
        let next = state.catalogue(&last, changed);
        let known: HashSet<_> = last.refused.iter().collect();
        let refused = next.refused.iter().filter(|tool| !known.contains(tool));
        let refused: Vec<_> = refused.cloned().collect();
        log(&refused);
        let known: HashSet<_> = last.held.iter().map(identity).collect();
        let held = next
            .held
            .iter()
            .filter(|held| !known.contains(&identity(held)));
        let held: Vec<_> = held.cloned().collect();
        for ToolChange {
            set,
            server,
            tool,
            reason,
            ..
        } in held.iter().map(|held| &**held).take(LOGGED)
        {
            tracing::warn!(%set, %server, %tool, reason, "tool held for review");
        }
        let changes = Changes {
            refused,
            held,
            renamed: mem::take(&mut state.names.renamed),
            named: changes.named
                || last
                    .refused
                    .iter()
                    .any(|tool| tool.reason == WAITS && !next.refused.contains(tool)),
            ..changes
        };
        self.current.store(Arc::new(next));
        changes
    }
}

/// What makes a held definition another one than before.
fn identity(held: &Arc<ToolChange>) -> (&ServerId, &ToolName, &str, &str) {
    (&held.server, &held.tool, &held.digest, &held.reason)
}

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
