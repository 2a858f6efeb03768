//! All replica sets: a snapshot read without locks and swapped whole.

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use callward_core::{InvalidConfig, ReplicaSetId, ServerId, Weight};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::drain::Draining;
use crate::endpoint::Endpoint;
use crate::events::RouteEvents;
use crate::health::{
    Health, HealthConfig, HealthStatus, HealthUpdate, Presence, SetHealth, Witness,
};
use crate::member::Member;
use crate::set::{QuickMap, ReplicaSet};
use crate::state::ServerState;
use crate::stats::{ServerStats, SetStats};
use crate::tools::Tools;

/// The replica sets a [`Router`](crate::Router) chooses from.
///
/// Reading takes no lock and costs one hash lookup, however many sets there are. Updates take
/// turns, work on a copy of the table and swap it in whole: a reader sees all of an update or
/// nothing. A call that runs keeps the set it started with.
pub struct Pool<S> {
    sets: ArcSwap<Sets<S>>,
    updating: Mutex<()>,
    events: Arc<RouteEvents>,
}

impl<S> Pool<S> {
    /// Starts without any set. Health is watched as [`HealthConfig::default`] says.
    #[must_use]
    pub fn new() -> Self {
        Self::of_valid(HealthConfig::default())
    }

    /// Starts without any set, with settings of its own for the health of servers.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn with_health(config: HealthConfig) -> Result<Self, InvalidConfig> {
        config.validate().map(|()| Self::of_valid(config))
    }

    fn of_valid(config: HealthConfig) -> Self {
        let events = Arc::<RouteEvents>::default();
        Self {
            sets: ArcSwap::from_pointee(Sets {
                by_id: QuickMap::default(),
                health: Health::of_valid(config, events.clone()),
            }),
            updating: Mutex::new(()),
            events,
        }
    }

    /// Returns the settings of health.
    #[must_use]
    pub fn health_config(&self) -> HealthConfig {
        self.sets.load().health.config
    }

    /// Has each change of a server's health told to `told`, which must neither block nor be slow: a
    /// call may be what changed it. Only the first that is set is told; says whether this one is.
    pub fn on_health(&self, told: impl Fn(HealthUpdate) + Send + Sync + 'static) -> bool {
        self.sets.load().health.observer.set(told)
    }

    /// Takes note that somebody says a server is there, or is not. One that is not gets no call as
    /// long as others are fit, and none that needs a weight, until the same witness says that it is.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn set_health(
        &self,
        server: &ServerId,
        who: Witness,
        presence: Presence,
    ) -> Result<(), UnknownServer> {
        self.with_endpoint(server, |endpoint| endpoint.witness(who, presence))
    }

    /// Returns what is known of a server's health.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if no set has it.
    pub fn health(&self, server: &ServerId) -> Result<HealthStatus, UnknownServer> {
        // what a set has is in a set
        let found = self.with_endpoint(server, Endpoint::health)?;
        found.ok_or_else(|| UnknownServer(server.clone()))
    }

    /// Changes any number of sets in one step.
    ///
    /// `change` must not update the same pool again: it would wait for itself. If it panics,
    /// nothing changes.
    pub fn update<R>(&self, change: impl FnOnce(&mut Sets<S>) -> R) -> R {
        let _one_at_a_time = self.updating.lock();
        let mut next = Sets::clone(&self.sets.load());
        let result = change(&mut next);
        let next = Arc::new(next);
        let previous = self.sets.swap(next.clone());
        next.count_health(&previous);
        result
    }

    /// Adds a server to a set, which is made where it is not there. One of the same id in the set is
    /// replaced, and keeps its counts. See [`Sets::set_members`].
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

    /// Removes a server from its set; the last one takes the set along. Calls that run there are left
    /// alone, and a server that is added under the same id is another one: it counts from 0.
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
        // who chose it by the set of before finds it closed
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
                member.endpoint_mut().set_weight(weight);
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
        self.with_endpoint(server, |endpoint| endpoint.state().clone())
    }

    fn with_endpoint<R>(
        &self,
        server: &ServerId,
        read: impl FnOnce(&Endpoint) -> R,
    ) -> Result<R, UnknownServer> {
        let sets = self.sets.load();
        let found = sets.by_id.values().find_map(|set| set.endpoint(server));
        found.map(read).ok_or_else(|| UnknownServer(server.clone()))
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
                sets.remove(&id);
            } else {
                sets.set_members(id, members);
            }
            Ok(())
        })
    }

    /// Replaces the members of one set, or adds the set. See [`Sets::set_members`].
    pub fn set_members(&self, id: ReplicaSetId, members: Vec<Member<S>>) {
        self.update(|sets| sets.set_members(id, members));
    }

    /// Removes a set; says whether it was there. Calls that run are left alone.
    pub fn remove(&self, id: &ReplicaSetId) -> bool {
        self.update(|sets| sets.remove(id))
    }

    /// Returns one set as it is now.
    #[must_use]
    pub fn get(&self, id: &ReplicaSetId) -> Option<Arc<ReplicaSet<S>>> {
        self.sets.load().by_id.get(id).cloned()
    }

    /// Returns where all that routes over this pool, or finds out how its servers are, tells of it.
    #[must_use]
    pub fn events(&self) -> &Arc<RouteEvents> {
        &self.events
    }

    /// Returns all sets as they are now, to read and let go again soon.
    pub(crate) fn read(&self) -> Guard<Arc<Sets<S>>> {
        self.sets.load()
    }

    /// Returns what is known of each server, in numbers, in the order of the sets' names. Meant for
    /// dashboards, not for every call.
    #[must_use]
    pub fn stats(&self) -> Vec<SetStats> {
        let now = Instant::now();
        let sets = self.sets.load();
        let of_set = |(id, set): (&ReplicaSetId, &Arc<ReplicaSet<S>>)| {
            let since = Tools::nanos_from(set.tools().origin(), now);
            let servers = set.endpoints().iter();
            SetStats {
                set: id.clone(),
                servers: servers
                    .map(|one| ServerStats::of(one, now, since))
                    .collect(),
            }
        };
        let mut stats: Vec<_> = sets.iter().map(of_set).collect();
        stats.sort_by(|one, other| one.set.cmp(&other.set));
        stats
    }

    /// Returns all sets as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Sets<S>> {
        self.sets.load_full()
    }
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&*self.sets.load()).finish()
    }
}

/// The table of replica sets at one moment.
pub struct Sets<S> {
    /// Read by every call: the default hasher took more time than the rest of the look-up.
    by_id: QuickMap<ReplicaSetId, Arc<ReplicaSet<S>>>,
    health: Health,
}

impl<S> Sets<S> {
    /// Replaces the members of one set, or adds the set.
    ///
    /// A member whose server id was in the set before keeps its count of calls in flight, and the
    /// set keeps whose turn it is. Of two members with the same server id the later one counts.
    pub fn set_members(&mut self, id: ReplicaSetId, members: Vec<Member<S>>) {
        let previous = self.by_id.get(&id).map(Arc::as_ref);
        let health = match previous {
            Some(previous) => previous.health().clone(),
            None => Arc::new(SetHealth::new(id.clone(), self.health.clone())),
        };
        let set = Arc::new(ReplicaSet::new(members, previous, health));
        self.by_id.insert(id, set);
    }

    /// Returns the members of a set, to change them; none where it is not there.
    fn members_of(&self, id: &ReplicaSetId) -> Vec<Member<S>>
    where
        S: Clone,
    {
        let set = self.by_id.get(id);
        set.map_or_else(Vec::new, |set| set.members().collect())
    }

    /// Removes a set; says whether it was there.
    pub fn remove(&mut self, id: &ReplicaSetId) -> bool {
        self.by_id.remove(id).is_some()
    }

    /// Returns one set.
    #[must_use]
    pub fn get(&self, id: &ReplicaSetId) -> Option<&Arc<ReplicaSet<S>>> {
        self.by_id.get(id)
    }

    /// Begins and ends to count the health of servers, where this table has taken the place of
    /// another.
    fn count_health(&self, previous: &Self) {
        for (id, set) in &self.by_id {
            let before = previous.by_id.get(id);
            if before.is_none_or(|before| !Arc::ptr_eq(before, set)) {
                set.count_health(before.map(Arc::as_ref));
            }
        }
        for (id, before) in &previous.by_id {
            if !self.by_id.contains_key(id) {
                before.endpoints().iter().for_each(Endpoint::leave);
            }
        }
    }

    /// Lists all sets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&ReplicaSetId, &Arc<ReplicaSet<S>>)> {
        self.by_id.iter()
    }
}

impl<S> Clone for Sets<S> {
    fn clone(&self) -> Self {
        Self {
            by_id: self.by_id.clone(),
            health: self.health.clone(),
        }
    }
}

impl<S> fmt::Debug for Sets<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.by_id).finish()
    }
}

/// No replica set has a server of this id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no replica set has a server \"{0}\"")]
pub struct UnknownServer(ServerId);

impl UnknownServer {
    /// Returns the id that nobody has.
    #[must_use]
    pub fn server(&self) -> &ServerId {
        &self.0
    }
}
