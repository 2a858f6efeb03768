//! All replica sets: a snapshot read without locks and swapped whole.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_core::{ReplicaSetId, ServerId, Weight};
use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::events::RouteEvents;
use crate::member::Member;
use crate::set::ReplicaSet;
use crate::state::{Draining, ServerState};
use crate::stats::{ServerStats, SetStats};

/// The replica sets a [`Router`](crate::Router) chooses from.
///
/// Updates take turns, work on a copy of the table and swap it in whole: a reader sees all of an
/// update or nothing. A call that runs keeps the set it started with.
#[derive(Debug)]
pub struct Pool<S> {
    sets: ArcSwap<Sets<S>>,
    updating: Mutex<()>,
    events: Arc<RouteEvents>,
}

/// The table of replica sets at one moment.
type Sets<S> = HashMap<ReplicaSetId, Arc<ReplicaSet<S>>, RandomState>;

impl<S> Pool<S> {
    /// Starts without any set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sets: ArcSwap::default(),
            updating: Mutex::new(()),
            events: Arc::default(),
        }
    }

    /// Changes any number of sets in one step.
    fn update<R>(&self, change: impl FnOnce(&mut Sets<S>) -> R) -> R {
        let _one_at_a_time = self.updating.lock();
        let mut next = Sets::clone(&self.sets.load());
        let result = change(&mut next);
        self.sets.store(Arc::new(next));
        result
    }

    /// Gives a server no new calls from now on: none begins there once this has returned.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn drain(&self, server: &ServerId) -> Result<Draining, UnknownServer> {
        let state = self.state(server)?;
        state.set_draining(true);
        Ok(Draining(state))
    }

    /// Gives a drained server calls again.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn undrain(&self, server: &ServerId) -> Result<(), UnknownServer> {
        self.state(server)?.set_draining(false);
        Ok(())
    }

    fn state(&self, server: &ServerId) -> Result<Arc<ServerState>, UnknownServer> {
        let sets = self.sets.load();
        let found = sets.values().find_map(|set| set.endpoint(server));
        let state = found.map(|endpoint| endpoint.state.clone());
        state.ok_or_else(|| UnknownServer(server.clone()))
    }

    /// Replaces the members of one set, or adds the set.
    ///
    /// A member whose server id was in the set before continues its counts. Of two members with the
    /// same server id the later one counts.
    pub fn set_members(&self, id: ReplicaSetId, members: Vec<Member<S>>) {
        self.update(|sets| set_members(sets, id, members));
    }

    /// Returns one set as it is now.
    #[must_use]
    pub fn get(&self, id: &ReplicaSetId) -> Option<Arc<ReplicaSet<S>>> {
        self.sets.load().get(id).cloned()
    }

    /// Returns the id of the set that has a server.
    #[must_use]
    pub fn set_of(&self, server: &ServerId) -> Option<ReplicaSetId> {
        Some(find(&self.sets.load(), server)?.0)
    }

    /// Returns the events of the routers over this pool.
    #[must_use]
    pub fn events(&self) -> &Arc<RouteEvents> {
        &self.events
    }

    /// Returns what is known of each server, in numbers, in the order of the sets' names. For
    /// dashboards, not for every call.
    #[must_use]
    pub fn stats(&self) -> Vec<SetStats> {
        let sets = self.sets.load();
        let of_set = |(id, set): (&ReplicaSetId, &Arc<ReplicaSet<S>>)| SetStats {
            set: id.clone(),
            servers: set.endpoints().iter().map(ServerStats::of).collect(),
        };
        let mut stats: Vec<_> = sets.iter().map(of_set).collect();
        stats.sort_by(|one, other| one.set.cmp(&other.set));
        stats
    }
}

impl<S: Clone> Pool<S> {
    /// Adds any number of servers to a set in one step; makes the set if it is not there. A server
    /// whose id the set has is replaced, and continues its counts.
    pub fn add_all(&self, id: ReplicaSetId, more: impl IntoIterator<Item = Member<S>>) {
        self.update(|sets| {
            let mut members = sets.get(&id).map_or_else(Vec::new, |set| set.members());
            members.extend(more);
            set_members(sets, id, members);
        });
    }

    /// Removes a server from its set; the last one takes the set along. Calls in flight there go
    /// on. A server that is added later under the same id counts from 0.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn remove_server(&self, server: &ServerId) -> Result<Draining, UnknownServer> {
        let state = self.state(server)?;
        self.change_set_of(server, |members| {
            members.retain(|member| member.server() != server);
        })?;
        // a call that chose it from the earlier snapshot does not begin there
        state.set_draining(true);
        Ok(Draining(state))
    }

    /// Sets the weight of a server. It goes on counting.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn reweigh(&self, server: &ServerId, weight: Weight) -> Result<(), UnknownServer> {
        self.change_set_of(server, |members| {
            for member in members.iter_mut().filter(|m| m.server() == server) {
                member.endpoint.weight = weight;
            }
        })
    }

    fn change_set_of(
        &self,
        server: &ServerId,
        change: impl FnOnce(&mut Vec<Member<S>>),
    ) -> Result<(), UnknownServer> {
        self.update(|sets| {
            let (id, set) = find(sets, server).ok_or_else(|| UnknownServer(server.clone()))?;
            let mut members = set.members();
            change(&mut members);
            if members.is_empty() {
                sets.remove(&id);
            } else {
                set_members(sets, id, members);
            }
            Ok(())
        })
    }
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self::new()
    }
}

fn find<S>(sets: &Sets<S>, server: &ServerId) -> Option<(ReplicaSetId, Arc<ReplicaSet<S>>)> {
    let found = sets.iter().find(|(_, set)| set.endpoint(server).is_some());
    found.map(|(id, set)| (id.clone(), set.clone()))
}

fn set_members<S>(sets: &mut Sets<S>, id: ReplicaSetId, members: Vec<Member<S>>) {
    let previous = sets.get(&id).map(Arc::as_ref);
    let set = Arc::new(ReplicaSet::new(members, previous));
    sets.insert(id, set);
}

/// No replica set has a server of this id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no replica set has a server \"{0}\"")]
pub struct UnknownServer(ServerId);
