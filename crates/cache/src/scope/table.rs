//! Where scopes live.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::group::Group;
use super::{Moment, Scope};
use dashmap::DashMap;
use tokio::time::Instant;

/// How many places named scopes share. Two names that meet in one place are dropped together,
/// which costs a look-up and is never wrong; in exchange a name made from arguments, of which a
/// stranger may invent any number, takes no memory.
const PLACES: usize = if cfg!(all(test, shuttle)) { 4 } else { 4096 };

/// All scopes of one cache.
#[derive(Debug)]
pub(crate) struct Scopes {
    born: Instant,
    /// One for each group of replica sets that was called or named by a rule; there are as many as an
    /// operator configures.
    groups: DashMap<Group, Arc<GroupScopes>>,
    /// Made when the first rule names one.
    named: OnceLock<Arc<[Scope]>>,
    /// The scopes of a group that is made anew must not begin with an epoch they had before.
    epochs: AtomicU64,
    /// Places names under a secret: nobody outside can make two meet.
    hasher: RandomState,
}

/// The two scopes of a group.
#[derive(Debug)]
pub(crate) struct GroupScopes {
    any: Scope,
    wide: Scope,
}

impl Scopes {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            born: now,
            groups: DashMap::new(),
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

    /// Returns the scope that every write to the group touches.
    pub(crate) fn any(&self, group: &Group) -> ScopeRef {
        ScopeRef::Any(self.group(group))
    }

    /// Returns the scope that those writes to the group touch of which nothing else is said.
    pub(crate) fn wide(&self, group: &Group) -> ScopeRef {
        ScopeRef::Wide(self.group(group))
    }

    /// Returns a named scope of a group.
    pub(crate) fn named(&self, group: &Group, name: &str) -> ScopeRef {
        let all = (0..PLACES).map(|_| Scope::new(0));
        let named = self.named.get_or_init(|| all.collect());
        let place = self.hasher.hash_one((group, name)) % named.len() as u64;
        ScopeRef::Named(named.clone(), usize::try_from(place).unwrap_or(0))
    }

    /// Makes everything that was read unreachable.
    pub(crate) fn raise_all(&self) {
        for group in &self.groups {
            group.raise();
        }
    }

    /// Makes everything unreachable that was read from scopes of this name, in whichever group.
    pub(crate) fn raise_named(&self, name: &str) {
        for group in &self.groups {
            self.named(group.key(), name).scope().raise();
        }
    }

    /// Returns `true` if something is being written to the group, or may still land.
    pub(crate) fn is_written(&self, group: &Group, now: Instant) -> bool {
        let scopes = self.groups.get(group);
        scopes.is_some_and(|scopes| !scopes.is_quiet(self.at(now)))
    }

    /// Forgets the scopes of groups that are not kept, except those in use and those to which a write
    /// may still land: a group that comes back must not miss it.
    pub(crate) fn retain(&self, keep: impl Fn(&Group) -> bool, now: Instant) {
        let now = self.at(now);
        // the map is locked here, so no call takes a reference meanwhile
        self.groups.retain(|group, scopes| {
            let in_use = Arc::strong_count(scopes) > 1 || !scopes.is_quiet(now);
            keep(group) || in_use || scopes.any.is_doubtful(now)
        });
    }

    fn group(&self, group: &Group) -> Arc<GroupScopes> {
        if let Some(scopes) = self.groups.get(group) {
            return scopes.clone();
        }
        let new = || {
            let epoch = self.epochs.fetch_add(1 << 32, Ordering::Relaxed);
            Arc::new(GroupScopes {
                any: Scope::new(epoch),
                wide: Scope::new(epoch),
            })
        };
        self.groups.entry(group.clone()).or_insert_with(new).clone()
    }
}

impl GroupScopes {
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
    /// What every write to a group touches.
    Any(Arc<GroupScopes>),
    /// What those writes to a group touch of which nothing else is said.
    Wide(Arc<GroupScopes>),
    /// What the writes touch whose rules name it.
    Named(Arc<[Scope]>, usize),
    /// What belongs to one tool. No write touches it.
    Own(Arc<Scope>),
}

impl ScopeRef {
    pub(crate) fn scope(&self) -> &Scope {
        match self {
            Self::Any(group) => &group.any,
            Self::Wide(group) => &group.wide,
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
