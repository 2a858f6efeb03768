//! All scopes of one cache.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::group::Group;
use super::{Moment, Scope};
use dashmap::DashMap;
use tokio::time::Instant;

/// The slots of named scopes. Where there are more names, some share a slot and are invalidated
/// together, which costs a look-up and is never wrong; in exchange a name made from arguments, of
/// which a client may invent any number, takes no memory.
const SLOTS: usize = if cfg!(all(test, shuttle)) { 4 } else { 4096 };

/// How many slots are tried for one of its own.
const TRIED: u64 = 8;

/// A slot, with the hash of its first name; 0 before it has one.
#[derive(Debug)]
struct Slot {
    first: AtomicU64,
    scope: Arc<Scope>,
}

impl Slot {
    /// Returns `true` if the slot is that of this name, perhaps from now on.
    fn takes(&self, name: u64) -> bool {
        let first = &self.first;
        let taken = first.compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed);
        taken.map_or_else(|first| first == name, |_| true)
    }
}

/// All scopes of one cache.
#[derive(Debug)]
pub(crate) struct Scopes {
    born: Instant,
    /// As many as an operator configures.
    groups: DashMap<Group, Arc<GroupScopes>>,
    /// Made when the first rule names one.
    named: OnceLock<Vec<Slot>>,
    /// The scopes of a group that is made again must not begin with an epoch they had before.
    epochs: AtomicU64,
    /// Places names under a secret: a client cannot make two meet.
    hasher: RandomState,
}

/// The two scopes of a group.
#[derive(Debug)]
pub(crate) struct GroupScopes {
    /// Changed by every write to the group.
    pub(super) any: Arc<Scope>,
    /// Changed by the writes to the group that have no rule.
    pub(super) wide: Arc<Scope>,
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

    /// Returns an instant as this cache counts time.
    pub(crate) fn at(&self, now: Instant) -> Moment {
        Moment(nanos(now.saturating_duration_since(self.born)))
    }

    /// Returns a named scope of a group.
    pub(super) fn named(&self, group: &Group, name: &str) -> Arc<Scope> {
        let slot = |_| Slot {
            first: AtomicU64::new(0),
            scope: Arc::new(Scope::new(0)),
        };
        let named = self.named.get_or_init(|| (0..SLOTS).map(slot).collect());
        let hash = self.hasher.hash_one((group, name)).max(1);
        // modulo the length
        let at = |tried| usize::try_from(hash.wrapping_add(tried) % named.len() as u64);
        let slots = (0..TRIED).filter_map(|tried| named.get(at(tried).ok()?));
        let mut own = slots.filter(|slot| slot.takes(hash));
        // a slot is never given up, so a name always finds the same one
        let slot = own.next().unwrap_or_else(|| &named[at(0).unwrap_or(0)]);
        slot.scope.clone()
    }

    /// Invalidates everything.
    pub(crate) fn raise_all(&self) {
        // a group that is made meanwhile begins with an epoch of its own
        let groups: Vec<_> = self.groups.iter().map(|group| group.clone()).collect();
        for group in groups {
            group.any.raise();
            group.wide.raise();
        }
    }

    /// Invalidates everything that was read from scopes of this name, in whichever group.
    pub(crate) fn raise_named(&self, name: &str) {
        let groups: Vec<_> = self
            .groups
            .iter()
            .map(|group| group.key().clone())
            .collect();
        for group in groups {
            self.named(&group, name).raise();
        }
    }

    /// Returns `true` if the group is being written, or a write to it may still land.
    pub(crate) fn is_written(&self, group: &Group, now: Instant) -> bool {
        let scopes = self.groups.get(group).map(|scopes| scopes.clone());
        scopes.is_some_and(|scopes| scopes.has_conflict(self.at(now)))
    }

    /// Removes the scopes of groups that are not kept, except those in use and those to which a
    /// write may still land: a group that comes back must not miss it.
    pub(crate) fn retain(&self, keep: impl Fn(&Group) -> bool, now: Instant) {
        let now = self.at(now);
        // the map is locked here, so no call takes a reference meanwhile
        self.groups.retain(|group, scopes| {
            let in_use = Arc::strong_count(scopes) > 1 || scopes.has_conflict(now);
            keep(group) || in_use || scopes.any.is_doubtful(now)
        });
    }

    pub(super) fn group(&self, group: &Group) -> Arc<GroupScopes> {
        let new = || {
            let epoch = self.epochs.fetch_add(1 << 32, Ordering::Relaxed);
            Arc::new(GroupScopes {
                any: Arc::new(Scope::new(epoch)),
                wide: Arc::new(Scope::new(epoch)),
            })
        };
        self.groups.entry(group.clone()).or_insert_with(new).clone()
    }
}

impl GroupScopes {
    fn has_conflict(&self, now: Moment) -> bool {
        self.any.conflict(now).is_some() || self.wide.conflict(now).is_some()
    }
}

/// Returns a time in nanoseconds, at most `u64::MAX`.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
