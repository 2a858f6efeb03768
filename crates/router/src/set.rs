//! A replica set as the router reads it: immutable, the heaviest server first.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use callward_core::{RouteRule, ServerId, Tool};
use tokio::time::Instant;

use crate::affinity::rendezvous::Candidate;
use crate::endpoint::Endpoint;
use crate::groups::Groups;
use crate::health::{SetHealth, Start};
use crate::lane::Lane;
use crate::member::Member;
use crate::state::ServerState;
use crate::tools::Tools;

/// A map that calls read: the default hasher takes longer than all else of a look-up. Its keys are the
/// operator's, and seeded all the same.
pub(crate) type QuickMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Where each server of a set stands.
pub(crate) type Places = QuickMap<ServerId, u32>;

/// Servers that may stand in for one another, heaviest first.
///
/// Immutable: an update makes another one, which goes on counting.
pub struct ReplicaSet<S> {
    endpoints: Vec<Endpoint>,
    services: Vec<S>,
    /// Of each endpoint, close together: all are read for a new key.
    candidates: Box<[Candidate]>,
    /// Where each server stands.
    places: Places,
    all: Lane,
    categories: Groups,
    capabilities: Groups,
    tools: Arc<Tools>,
    /// By the categories that a plan may prefer, as plans name them.
    preferred: Vec<(Vec<&'static str>, Lane)>,
    health: Arc<SetHealth>,
}

impl<S> ReplicaSet<S> {
    /// Orders the members. Those of a server that `previous` had too keep counting.
    pub(crate) fn new(
        members: Vec<Member<S>>,
        previous: Option<&Self>,
        health: Arc<SetHealth>,
    ) -> Self {
        let known: HashMap<&ServerId, &Endpoint> = previous
            .iter()
            .flat_map(|set| &set.endpoints)
            .map(|endpoint| (endpoint.server(), endpoint))
            .collect();
        let mut ordered: Vec<Member<S>> = Vec::with_capacity(members.len());
        let mut places: HashMap<ServerId, usize> = HashMap::with_capacity(members.len());
        for mut member in members {
            if let Some(before) = known.get(member.server()) {
                member.endpoint_mut().continue_from(before);
            }
            member.endpoint_mut().set_health(health.clone());
            let place = *places
                .entry(member.server().clone())
                .or_insert(ordered.len());
            match ordered.get_mut(place) {
                Some(earlier) => *earlier = member,
                None => ordered.push(member),
            }
        }
        for (given, member) in (0u32..).zip(&mut ordered) {
            member.endpoint_mut().set_given(given);
        }
        for endpoint in ordered.iter().map(Member::endpoint) {
            // before the set is seen: calls that go by an older one ask, too
            endpoint.state().set_weight(endpoint.weight());
        }
        ordered.sort_by_key(|member| Reverse(member.endpoint().weight()));
        let (endpoints, services): (Vec<_>, Vec<_>) =
            ordered.into_iter().map(Member::into_parts).unzip();
        let candidates = endpoints.iter().map(Endpoint::candidate).collect();
        let places = endpoints.iter().map(|endpoint| endpoint.server().clone());
        let places = places.zip(0..).collect();
        let all = Lane::of_all(&endpoints, previous.map(|set| &set.all));
        let preferred = preferences()
            .filter_map(|prefer| {
                let before = previous.and_then(|set| set.preferred_lane(&prefer));
                let lane = Lane::of_categories(&endpoints, &prefer, before)?;
                Some((prefer, lane))
            })
            .collect();
        Self {
            categories: Groups::new(&endpoints, Endpoint::categories),
            capabilities: Groups::new(&endpoints, Endpoint::capabilities),
            endpoints,
            services,
            candidates,
            places,
            all,
            tools: previous.map_or_else(
                || Arc::new(Tools::new(Instant::now())),
                |set| set.tools.clone(),
            ),
            preferred,
            health,
        }
    }

    /// Returns the servers, heaviest first, in the order given where weights are equal.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Finds what is known of this server.
    #[must_use]
    pub fn endpoint(&self, server: &ServerId) -> Option<&Endpoint> {
        self.endpoints.get(*self.places.get(server)? as usize)
    }

    /// Finds the service that leads to this server.
    #[must_use]
    pub fn service(&self, server: &ServerId) -> Option<&S> {
        self.services.get(*self.places.get(server)? as usize)
    }

    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Says where each server stands.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Returns how many calls of a tool the router has given to this server that have not ended; 0 if
    /// the set has no such server. The first 256 tools of a set are counted apart, as long as they live.
    #[must_use]
    pub fn in_flight_of(&self, server: &ServerId, tool: &Arc<Tool>) -> usize {
        let (Some(endpoint), Some(column)) = (self.endpoint(server), self.tools.find(tool)) else {
            return 0;
        };
        endpoint.state().measured().in_flight(column)
    }

    pub(crate) fn service_at(&self, place: usize) -> Option<&S> {
        self.services.get(place)
    }

    pub(crate) fn health(&self) -> &Arc<SetHealth> {
        &self.health
    }

    /// Begins and ends to count the health of servers, when this set has taken the place of another.
    pub(crate) fn count_health(&self, previous: Option<&Self>) {
        let stays: HashSet<*const ServerState> = self.states().collect();
        let was_there: HashSet<_> = previous.into_iter().flat_map(Self::states).collect();
        for endpoint in previous.into_iter().flat_map(Self::endpoints) {
            if !stays.contains(&Arc::as_ptr(endpoint.state())) {
                endpoint.leave();
            }
        }
        let start = match was_there.is_empty() {
            true => Start::Full,
            false => Start::Slow,
        };
        for endpoint in &self.endpoints {
            if !was_there.contains(&Arc::as_ptr(endpoint.state())) {
                endpoint.join(start);
            }
        }
    }

    fn states(&self) -> impl Iterator<Item = *const ServerState> {
        let states = self.endpoints.iter().map(Endpoint::state);
        states.map(Arc::as_ptr)
    }

    pub(crate) fn all(&self) -> &Lane {
        &self.all
    }

    /// Returns who is in which category, and who has which capability.
    pub(crate) fn groups(&self) -> [&Groups; 2] {
        [&self.categories, &self.capabilities]
    }

    /// Returns the tools that are measured apart.
    pub(crate) fn tools(&self) -> &Arc<Tools> {
        &self.tools
    }

    /// Returns the servers of categories that a plan prefers, if there are any.
    pub(crate) fn preferred_lane(&self, prefer: &[&'static str]) -> Option<&Lane> {
        let mut lanes = self.preferred.iter();
        let (_, lane) = lanes.find(|(categories, _)| categories == prefer)?;
        Some(lane)
    }

    /// Takes the set apart, to make another one of its members, in the order they were given.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member<S>>
    where
        S: Clone,
    {
        let services = self.services.iter().cloned();
        let members = self.endpoints.iter().cloned().zip(services);
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|(endpoint, _)| endpoint.given());
        let members = members.into_iter();
        members.map(|(endpoint, service)| Member::from_parts(endpoint, service))
    }
}

/// Returns every list of categories that a plan can prefer.
fn preferences() -> impl Iterator<Item = Vec<&'static str>> {
    let [one, other] = RouteRule::PREFERABLE;
    [vec![one], vec![other], vec![one, other]].into_iter()
}

impl<S> fmt::Debug for ReplicaSet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.endpoints).finish()
    }
}
