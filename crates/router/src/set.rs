//! A replica set as the router reads it: immutable, the heaviest member first.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use tollgate_core::ServerId;

use crate::member::Member;
use crate::turn::Turns;

/// Servers that may stand in for one another, heaviest first.
///
/// Immutable: an update makes another one, which keeps the counters.
pub struct ReplicaSet<S> {
    members: Vec<Member<S>>,
    categories: Vec<String>,
    turns: Arc<Turns>,
}

impl<S> ReplicaSet<S> {
    /// Orders the members. Those of a server that `previous` had too keep counting.
    pub(crate) fn new(members: Vec<Member<S>>, previous: Option<&Self>) -> Self {
        let mut ordered: Vec<Member<S>> = Vec::with_capacity(members.len());
        for mut member in members {
            if let Some(before) = previous.and_then(|set| set.member(member.server())) {
                member.continue_from(before);
            }
            match ordered.iter_mut().find(|m| m.server() == member.server()) {
                Some(earlier) => *earlier = member,
                None => ordered.push(member),
            }
        }
        ordered.sort_by_key(|member| Reverse(member.weight()));

        let mut categories: Vec<String> = ordered
            .iter()
            .flat_map(|member| member.categories().iter().cloned())
            .collect();
        categories.sort_unstable();
        categories.dedup();
        Self {
            members: ordered,
            categories,
            turns: previous.map_or_else(Arc::default, |set| set.turns.clone()),
        }
    }

    /// Returns the members, heaviest first, in the order given where weights are equal.
    #[must_use]
    pub fn members(&self) -> &[Member<S>] {
        &self.members
    }

    /// Finds the member of this server.
    #[must_use]
    pub fn member(&self, server: &ServerId) -> Option<&Member<S>> {
        self.members.iter().find(|member| member.server() == server)
    }

    /// Returns the members that may get a call that needs this weight.
    ///
    /// This is the annotation filter. What it leaves out cannot be reached by anything after it,
    /// because nothing after it sees more than this slice.
    pub(crate) fn eligible(&self, min_weight: Option<u32>) -> &[Member<S>] {
        let least = min_weight.unwrap_or(0);
        let end = self
            .members
            .partition_point(|member| member.weight() >= least);
        self.members.get(..end).unwrap_or_default()
    }

    /// Says whether any member is in one of these categories.
    pub(crate) fn has_any(&self, categories: &[&'static str]) -> bool {
        self.categories
            .iter()
            .any(|known| categories.contains(&known.as_str()))
    }

    /// Returns whose turn it is.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }
}

impl<S> fmt::Debug for ReplicaSet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.members).finish()
    }
}
