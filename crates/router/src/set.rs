//! A replica set as the router reads it: immutable, the heaviest server first.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use callward_core::{FingerprintKey, Owner, ServerId, ToolCall, Weight};

use crate::affinity::rendezvous::{fold, highest};
use crate::endpoint::Endpoint;
use crate::member::Member;

/// Turn counters of a set: one for each group of servers that calls choose among, by a hash of the
/// group. With one for all, reads and destructive calls that alternate would send every destructive
/// call to the same server.
pub(crate) type Turns = [AtomicU64; 16];

/// Servers that can replace one another, heaviest first, in the order they were added where weights
/// are equal.
///
/// Immutable: an update makes another one, which continues its counts.
#[derive(Debug)]
pub struct ReplicaSet<S> {
    endpoints: Vec<Endpoint>,
    pub(crate) services: Vec<S>,
    pub(crate) turns: Arc<Turns>,
}

impl<S> ReplicaSet<S> {
    /// Orders the members. Those of a server that `previous` had too continue its counts. Of two
    /// members with the same server id the later one counts.
    pub(crate) fn new(members: Vec<Member<S>>, previous: Option<&Self>) -> Self {
        let mut ordered: Vec<Member<S>> = Vec::with_capacity(members.len());
        for mut member in members {
            if let Some(before) = previous.and_then(|set| set.endpoint(member.server())) {
                member.endpoint.state = before.state.clone();
            }
            // before the set is published: calls that go by an earlier one read it too
            member.endpoint.state.set_weight(member.endpoint.weight);
            let known = ordered
                .iter_mut()
                .find(|one| one.server() == member.server());
            match known {
                Some(known) => *known = member,
                None => ordered.push(member),
            }
        }
        for (place, member) in ordered.iter_mut().enumerate() {
            member.endpoint.added = place;
        }
        ordered.sort_by_key(|member| Reverse(member.endpoint.weight));
        let parts = ordered
            .into_iter()
            .map(|member| (member.endpoint, member.service));
        let (endpoints, services) = parts.unzip();
        Self {
            endpoints,
            services,
            turns: previous.map_or_else(Arc::default, |set| set.turns.clone()),
        }
    }

    /// Returns the servers, heaviest first.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Returns what is known of this server.
    #[must_use]
    pub fn endpoint(&self, server: &ServerId) -> Option<&Endpoint> {
        self.endpoints.get(self.place(server)?)
    }

    /// Returns the service that leads to this server.
    #[must_use]
    pub fn service(&self, server: &ServerId) -> Option<&S> {
        self.services.get(self.place(server)?)
    }

    pub(crate) fn place(&self, server: &ServerId) -> Option<usize> {
        self.endpoints.iter().position(|one| one.server() == server)
    }

    /// Returns the place of the only server that a call may go to, since its owner's state is kept
    /// there; `None` where all callers share the servers.
    ///
    /// Each server ranks by the owner's names alone, so the place is the same for all calls of an
    /// owner, in every process, until the server is drained or leaves. Servers that may take any
    /// call come first.
    pub(crate) fn home(&self, call: &ToolCall) -> Option<usize> {
        if self.endpoints.len() < 2 {
            return None;
        }
        let key = digest(call.owner()?);
        [Weight::PRIMARY.get(), 1, 0].into_iter().find_map(|min| {
            let may_be_home =
                |one: &Endpoint| one.weight().get() >= min && !one.state.is_draining();
            let all = self.endpoints.iter().enumerate();
            let homes = all.filter(|(_, one)| may_be_home(one));
            highest(key, homes.map(|(place, one)| (place, one.candidate())))
        })
    }

    /// Returns the members, in the order they were added, to make another set of them.
    pub(crate) fn members(&self) -> Vec<Member<S>>
    where
        S: Clone,
    {
        let parts = self
            .endpoints
            .iter()
            .cloned()
            .zip(self.services.iter().cloned());
        let members = parts.map(|(endpoint, service)| Member { endpoint, service });
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|member| member.endpoint.added);
        members
    }
}

fn digest(owner: Owner<'_>) -> u64 {
    let key = FingerprintKey::fixed();
    let word = |text: &str| key.bytes(text.as_bytes());
    let session = owner.session.map(|session| word(session.as_str()));
    let words = [
        word(owner.principal.as_str()),
        u128::from(session.is_some()),
        session.unwrap_or_default(),
    ];
    fold(key.combine(&words))
}
