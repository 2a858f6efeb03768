//! Which server each key has: bounded, and forgotten when it is not used.

use std::collections::HashMap;
use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use super::KeyDigest;
use crate::RouteEvent;

/// Which server each key has.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Mutex<Slots>,
    max_keys: usize,
    ttl: Duration,
}

#[derive(Debug, Default)]
struct Slots {
    entries: Vec<Entry>,
    /// Where each key has its entry.
    places: HashMap<u64, usize>,
    /// The entry that is checked next, to see whether it has expired.
    hand: usize,
}

/// A key and its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    /// Of which kind it is: `session`, `user` or `argument`.
    pub(crate) by: &'static str,
    pub(crate) digest: KeyDigest,
    pub(crate) set: ReplicaSetId,
    pub(crate) server: ServerId,
    /// When it was used last.
    pub(crate) used: Instant,
}

/// Why a key has lost its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExpiryCause {
    /// It had no call for as long as keys are remembered.
    Ttl,
    /// The server left the replica set.
    Removed,
    /// The server is drained.
    Draining,
    /// The server cannot be reached.
    Unreachable,
    /// There were too many keys, and this one was not used for long.
    Capacity,
}

/// How many entries a new key checks for expiry, and how many where the table is full.
const CHECKS: usize = 2;
const CHECKS_IF_FULL: usize = 8;

impl Table {
    /// Remembers `max_keys` keys at most, each for `ttl` after its last use.
    pub(crate) fn new(max_keys: usize, ttl: Duration) -> Self {
        Self {
            slots: Mutex::default(),
            max_keys,
            ttl,
        }
    }

    /// Returns the entry of a key; `uses` counts this as a use of it.
    pub(crate) fn find(&self, key: u64, now: Instant, uses: bool) -> Option<Entry> {
        let mut slots = self.slots.lock();
        let place = *slots.places.get(&key)?;
        let entry = slots.entries.get_mut(place)?;
        if self.is_expired(entry, now) {
            return None;
        }
        if uses {
            entry.used = now;
        }
        Some(entry.clone())
    }

    /// Gives a key its server, and returns what that changed. One that it has already stays, unless
    /// it is the `lost` one.
    pub(crate) fn set(
        &self,
        entry: Entry,
        now: Instant,
        lost: Option<(ServerId, ExpiryCause)>,
    ) -> Vec<RouteEvent> {
        let is_set = RouteEvent::AffinitySet {
            by: entry.by,
            key: entry.digest,
            set: entry.set.clone(),
            server: entry.server.clone(),
            ttl_ms: u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
        };
        let mut slots = self.slots.lock();
        let place = slots.places.get(&entry.key).copied();
        if let Some(known) = place.and_then(|place| slots.entries.get_mut(place)) {
            let lost = lost.filter(|(server, _)| *server == known.server);
            let cause = match self.is_expired(known, now) {
                true => Some(ExpiryCause::Ttl),
                false => lost.map(|(_, cause)| cause),
            };
            return match cause {
                Some(cause) => vec![std::mem::replace(known, entry).expire(cause), is_set],
                // another call came first
                None => Vec::new(),
            };
        }
        let mut changes = self.make_space(&mut slots, now);
        let place = slots.entries.len();
        slots.places.insert(entry.key, place);
        slots.entries.push(entry);
        changes.push(is_set);
        changes
    }

    /// Removes expired entries among the next few, and where the table is full the least recently
    /// used of them.
    fn make_space(&self, slots: &mut Slots, now: Instant) -> Vec<RouteEvent> {
        let is_full = slots.entries.len() >= self.max_keys;
        let checks = if is_full { CHECKS_IF_FULL } else { CHECKS };
        let mut removed = Vec::new();
        let mut oldest: Option<(Instant, u64)> = None;
        for _ in 0..checks {
            if slots.hand >= slots.entries.len() {
                slots.hand = 0;
            }
            let Some(entry) = slots.entries.get(slots.hand) else {
                return removed;
            };
            let (used, key) = (entry.used, entry.key);
            if self.is_expired(entry, now) {
                // another entry moves to this place, and is checked next
                removed.extend(slots.remove(key, ExpiryCause::Ttl));
                continue;
            }
            if oldest.is_none_or(|(before, _)| used < before) {
                oldest = Some((used, key));
            }
            slots.hand += 1;
        }
        if let Some((_, key)) = oldest.filter(|_| slots.entries.len() >= self.max_keys) {
            removed.extend(slots.remove(key, ExpiryCause::Capacity));
        }
        removed
    }

    fn is_expired(&self, entry: &Entry, now: Instant) -> bool {
        now.saturating_duration_since(entry.used) >= self.ttl
    }
}

impl Slots {
    fn remove(&mut self, key: u64, cause: ExpiryCause) -> Option<RouteEvent> {
        let place = self.places.remove(&key)?;
        if place >= self.entries.len() {
            return None;
        }
        let entry = self.entries.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.key, place);
        }
        Some(entry.expire(cause))
    }
}

impl Entry {
    fn expire(self, reason: ExpiryCause) -> RouteEvent {
        RouteEvent::AffinityExpired {
            by: self.by,
            key: self.digest,
            set: self.set,
            server: self.server,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn server(number: u64) -> ServerId {
        ServerId::new(format!("s{number}")).unwrap()
    }

    fn entry(key: u64, on: u64, used: Instant) -> Entry {
        Entry {
            key,
            by: "user",
            digest: KeyDigest(u32::try_from(key).unwrap()),
            set: ReplicaSetId::new("test").unwrap(),
            server: server(on),
            used,
        }
    }

    /// Gives a key a server, and returns what that changed.
    fn set(table: &Table, key: u64, on: u64, now: Instant) -> Vec<RouteEvent> {
        table.set(entry(key, on, now), now, None)
    }

    #[test]
    fn the_least_recently_used_of_those_checked_leaves_a_full_table() {
        let (table, start) = (Table::new(8, TTL), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for key in 0..8 {
            set(&table, key, 0, at(key));
        }
        table.find(0, at(9), true);
        let lost = entry(1, 0, at(1)).expire(ExpiryCause::Capacity);
        assert_eq!(set(&table, 9, 0, at(10))[0], lost);
    }

    proptest! {
        /// Compared with a model that keeps every key and when it was used.
        #[test]
        fn it_never_exceeds_its_bound_and_never_invents_a_server(
            steps in prop::collection::vec((0_u64..20, 0_u64..5, 0_u64..40, any::<bool>()), 1..300),
            max_keys in 1_usize..12,
        ) {
            let table = Table::new(max_keys, TTL);
            let mut model: HashMap<u64, (ServerId, Instant)> = HashMap::new();
            let mut now = Instant::now();
            for (key, on, wait, sets) in steps {
                now += Duration::from_secs(wait);
                let found = table.find(key, now, true);
                if let Some(found) = &found {
                    let (known, used) = model.get_mut(&key).unwrap();
                    prop_assert_eq!(&found.server, &*known);
                    prop_assert!(now - *used < TTL);
                    *used = now;
                }
                if sets {
                    let is_set = !set(&table, key, on, now).is_empty();
                    prop_assert_eq!(is_set, found.is_none());
                    if is_set {
                        model.insert(key, (server(on), now));
                    }
                }
                prop_assert!(table.slots.lock().entries.len() <= max_keys);
            }
        }
    }
}
