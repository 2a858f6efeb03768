//! All replica sets: a snapshot read without locks and swapped whole.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_core::{ReplicaSetId, ServerId, Weight};
use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::drain::Draining;
use crate::events::RouteEvents;
use crate::member::Member;
use crate::set::ReplicaSet;
use crate::state::ServerState;
use crate::stats::{ServerStats, SetStats};

/// The replica sets a [`Router`](crate::Router) chooses from.
///
/// Updates take turns, work on a copy of the table and swap it in whole: a reader sees all of an
/// update or nothing. A call that runs keeps the set it started with.
pub struct Pool<S> {
    sets: ArcSwap<Sets<S>>,
    updating: Mutex<()>,
    events: Arc<RouteEvents>,
}

impl<S> Pool<S> {
    /// Starts without any set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sets: ArcSwap::from_pointee(Sets {
                by_id: HashMap::default(),
            }),
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

    /// Adds a server to a set, which is made where it is not there. One of the same id in the set
    /// is replaced, and continues its counts.
    pub fn add(&self, id: ReplicaSetId, member: Member<S>)
    where
        S: Clone,
    {
        self.add_all(id, [member]);
    }

    /// Adds any number of servers to a set in one step. See [`add`](Self::add).
    pub fn add_all(&self, id: ReplicaSetId, more: impl IntoIterator<Item = Member<S>>)
    where
        S: Clone,
    {
        self.update(|sets| {
            let mut members = sets.members_of(&id);
            members.extend(more);
            sets.set_members(id, members);
        });
    }

    /// Removes a server from its set; the last one takes the set along. Calls in flight there go
    /// on. A server that is added later under the same id counts from 0.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn remove_server(&self, server: &ServerId) -> Result<Draining, UnknownServer>
    where
        S: Clone,
    {
        let state = self.state(server)?;
        self.change_set_of(server, |members| {
            members.retain(|member| member.server() != server);
        })?;
        // a call that chose it from the earlier snapshot does not begin there
        state.set_draining(true);
        Ok(Draining::new(state))
    }

    /// Sets the weight of a server. It goes on counting.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn reweigh(&self, server: &ServerId, weight: Weight) -> Result<(), UnknownServer>
    where
        S: Clone,
    {
        self.change_set_of(server, |members| {
            for member in members.iter_mut().filter(|m| m.server() == server) {
                member.endpoint.weight = weight;
            }
        })
    }

    /// Gives a server no new calls from now on: none begins there once this has returned.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn drain(&self, server: &ServerId) -> Result<Draining, UnknownServer> {
        let state = self.state(server)?;
        state.set_draining(true);
        Ok(Draining::new(state))
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
        let found = sets.by_id.values().find_map(|set| set.endpoint(server));
        let state = found.map(|endpoint| endpoint.state.clone());
        state.ok_or_else(|| UnknownServer(server.clone()))
    }

    fn change_set_of(
        &self,
        server: &ServerId,
        change: impl FnOnce(&mut Vec<Member<S>>),
    ) -> Result<(), UnknownServer>
    where
        S: Clone,
    {
        self.update(|sets| {
            let mut all = sets.by_id.iter();
            let found = all.find(|(_, set)| set.endpoint(server).is_some());
            let id = found
                .map(|(id, _)| id.clone())
                .ok_or_else(|| UnknownServer(server.clone()))?;
            let mut members = sets.members_of(&id);
            change(&mut members);
            if members.is_empty() {
                sets.by_id.remove(&id);
            } else {
                sets.set_members(id, members);
            }
            Ok(())
        })
    }

    /// Replaces the members of one set, or adds the set.
    ///
    /// A member whose server id was in the set before continues its counts. Of two members with the
    /// same server id the later one counts.
    pub fn set_members(&self, id: ReplicaSetId, members: Vec<Member<S>>) {
        self.update(|sets| sets.set_members(id, members));
    }

    /// Returns one set as it is now.
    #[must_use]
    pub fn get(&self, id: &ReplicaSetId) -> Option<Arc<ReplicaSet<S>>> {
        self.sets.load().by_id.get(id).cloned()
    }

    /// Returns the id of the set that has a server.
    #[must_use]
    pub fn set_of(&self, server: &ServerId) -> Option<ReplicaSetId> {
        let sets = self.sets.load();
        let mut all = sets.by_id.iter();
        let (id, _) = all.find(|(_, set)| set.endpoint(server).is_some())?;
        Some(id.clone())
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
        let mut stats: Vec<_> = sets.by_id.iter().map(of_set).collect();
        stats.sort_by(|one, other| one.set.cmp(&other.set));
        stats
    }
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.sets.load().by_id).finish()
    }
}

/// The table of replica sets at one moment.
struct Sets<S> {
    by_id: HashMap<ReplicaSetId, Arc<ReplicaSet<S>>, RandomState>,
}

impl<S> Sets<S> {
    fn set_members(&mut self, id: ReplicaSetId, members: Vec<Member<S>>) {
        let previous = self.by_id.get(&id).map(Arc::as_ref);
        let set = Arc::new(ReplicaSet::new(members, previous));
        self.by_id.insert(id, set);
    }

    /// Returns the members of a set, to change them; none where it is not there.
    fn members_of(&self, id: &ReplicaSetId) -> Vec<Member<S>>
    where
        S: Clone,
    {
        let set = self.by_id.get(id);
        set.map_or_else(Vec::new, |set| set.members())
    }
}

impl<S> Clone for Sets<S> {
    fn clone(&self) -> Self {
        Self {
            by_id: self.by_id.clone(),
        }
    }
}

/// No replica set has a server of this id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no replica set has a server \"{0}\"")]
pub struct UnknownServer(ServerId);

impl UnknownServer {
    /// Returns the unknown id.
    #[must_use]
    pub fn server(&self) -> &ServerId {
        &self.0
    }
}
