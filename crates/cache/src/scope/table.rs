//! Where scopes live.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;
use tollgate_core::ReplicaSetId;

use super::{Moment, Scope};

/// How many places named scopes share. Two names that meet in one place are dropped together,
/// which costs a look-up and is never wrong; in exchange a name made from arguments, of which a
/// stranger may invent any number, takes no memory.
const PLACES: usize = if cfg!(all(test, shuttle)) { 4 } else { 4096 };

/// All scopes of one cache.
#[derive(Debug)]
pub(crate) struct Scopes {
    born: Instant,
    /// One for each replica set that was called or named by a rule; there are as many as an operator
    /// configures.
    sets: DashMap<ReplicaSetId, Arc<SetScopes>>,
    /// Made when the first rule names one.
    named: OnceLock<Arc<[Scope]>>,
    /// The scopes of a set that is made anew must not begin with an epoch they had before.
    epochs: AtomicU64,
    /// Places names under a secret: nobody outside can make two meet.
    hasher: RandomState,
}

/// The two scopes of a replica set.
#[derive(Debug)]
pub(crate) struct SetScopes {
    any: Scope,
    wide: Scope,
}

impl Scopes {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            born: now,
            sets: DashMap::new(),
            named: OnceLock::new(),
            epochs: AtomicU64::new(0),
            hasher: RandomState::new(),
        }
    }

    /// Returns when this cache began to count time.
    pub(crate) const fn born(&self) -> Instant {
        self.born
    }

    /// Returns an instant as this cache counts time.
    pub(crate) fn at(&self, now: Instant) -> Moment {
        let born = self.born;
        Moment { born, now }
    }

    /// Returns the scope that every write to the set touches.
    pub(crate) fn any(&self, set: &ReplicaSetId) -> ScopeRef {
        ScopeRef::Any(self.set(set))
    }

    /// Returns the scope that those writes to the set touch of which nothing else is said.
    pub(crate) fn wide(&self, set: &ReplicaSetId) -> ScopeRef {
        ScopeRef::Wide(self.set(set))
    }

    /// Returns a named scope of a set.
    pub(crate) fn named(&self, set: &ReplicaSetId, name: &str) -> ScopeRef {
        let all = (0..PLACES).map(|_| Scope::new(0));
        let named = self.named.get_or_init(|| all.collect());
        let place = self.hasher.hash_one((set.as_str(), name)) % named.len() as u64;
        ScopeRef::Named(named.clone(), usize::try_from(place).unwrap_or(0))
    }

    /// Makes everything read from a set unreachable.
    pub(crate) fn raise_set(&self, set: &ReplicaSetId) {
        if let Some(set) = self.sets.get(set) {
            set.raise();
        }
    }

    /// Makes everything read from any set unreachable.
    pub(crate) fn raise_all(&self) {
        for set in &self.sets {
            set.raise();
        }
    }

    /// Makes everything unreachable that was read from scopes of this name, in whichever set.
    pub(crate) fn raise_named(&self, name: &str) {
        for set in &self.sets {
            self.named(set.key(), name).scope().raise();
        }
    }

    /// Says whether something is being written to the set, or may still land.
    pub(crate) fn is_written(&self, set: &ReplicaSetId, now: Instant) -> bool {
        let scopes = self.sets.get(set);
        scopes.is_some_and(|scopes| !scopes.is_quiet(self.at(now)))
    }

    /// Forgets the scopes of sets that are not kept, but for those somebody looks at or writes to, and
    /// those to which a write may still land: a set that comes back must not miss it.
    pub(crate) fn retain(&self, keep: impl Fn(&ReplicaSetId) -> bool, now: Instant) {
        let now = self.at(now);
        // the map is locked where it is looked at, so nobody takes hold of one meanwhile
        self.sets.retain(|set, scopes| {
            keep(set) || Arc::strong_count(scopes) > 1 || !scopes.is_quiet(now)
        });
    }

    fn set(&self, set: &ReplicaSetId) -> Arc<SetScopes> {
        if let Some(set) = self.sets.get(set) {
            return set.clone();
        }
        let new = || {
            let epoch = self.epochs.fetch_add(1 << 32, Ordering::Relaxed);
            Arc::new(SetScopes {
                any: Scope::new(epoch),
                wide: Scope::new(epoch),
            })
        };
        self.sets.entry(set.clone()).or_insert_with(new).clone()
    }
}

impl SetScopes {
    /// Says whether nothing is being written, and nothing may still land.
    fn is_quiet(&self, now: Moment) -> bool {
        self.any.unquiet(now).is_none() && self.wide.unquiet(now).is_none()
    }

    fn raise(&self) {
        self.any.raise();
        self.wide.raise();
    }
}

/// One scope, to look at and to raise. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub(crate) enum ScopeRef {
    /// What every write to a replica set touches.
    Any(Arc<SetScopes>),
    /// What those writes to a replica set touch of which nothing else is said.
    Wide(Arc<SetScopes>),
    /// What the writes touch whose rules name it.
    Named(Arc<[Scope]>, usize),
    /// What belongs to one tool. No write touches it.
    Own(Arc<Scope>),
}

impl ScopeRef {
    pub(crate) fn scope(&self) -> &Scope {
        match self {
            Self::Any(set) => &set.any,
            Self::Wide(set) => &set.wide,
            #[expect(
                clippy::indexing_slicing,
                reason = "made by `named`, modulo the length"
            )]
            Self::Named(all, place) => &all[*place],
            Self::Own(scope) => scope,
        }
    }

    /// Says whether both are the same scope.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.scope(), other.scope())
    }
}

/// Returns a time as nanoseconds; the longest that can be said for one beyond.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
