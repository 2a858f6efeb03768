//! Which server each key has: bounded, and forgotten when it is not used.

use std::collections::HashMap;
use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{AffinityExpired, ExpiryCause, KeyDigest, KeyKind};

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
    pub(crate) kind: KeyKind,
    pub(crate) digest: KeyDigest,
    pub(crate) set: ReplicaSetId,
    pub(crate) server: ServerId,
    /// When it was used last.
    pub(crate) used: Instant,
}

/// What a call of [`Table::set`] changed.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// The key has the server that was set. Otherwise another call came first.
    pub(crate) is_set: bool,
    pub(crate) expired: Vec<AffinityExpired>,
}

/// How many entries a new key checks for expiry, and how many where the table is full.
const CHECKS: usize = 2;
const CHECKS_IF_FULL: usize = 8;

impl Table {
    /// Remembers `max_keys` keys at most, each for `ttl` after its last use.
    pub(crate) fn new(max_keys: usize, ttl: Duration) -> Self {
        Self {
            slots: Mutex::default(),
            max_keys: max_keys.max(1),
            ttl,
        }
    }

    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns how many keys are remembered, expired ones that were not met since included.
    pub(crate) fn len(&self) -> usize {
        self.slots.lock().entries.len()
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

    /// Gives a key its server. One that it has already stays, unless it is the `lost` one.
    pub(crate) fn set(
        &self,
        entry: Entry,
        now: Instant,
        lost: Option<(ServerId, ExpiryCause)>,
    ) -> Change {
        let mut change = Change::default();
        let mut slots = self.slots.lock();
        let place = slots.places.get(&entry.key).copied();
        if let Some(known) = place.and_then(|place| slots.entries.get_mut(place)) {
            let cause = if self.is_expired(known, now) {
                Some(ExpiryCause::Ttl)
            } else {
                lost.and_then(|(server, cause)| (server == known.server).then_some(cause))
            };
            if let Some(cause) = cause {
                let before = std::mem::replace(known, entry);
                change.expired.push(before.expire(cause));
                change.is_set = true;
            }
            return change;
        }
        self.make_space(&mut slots, now, &mut change);
        let place = slots.entries.len();
        slots.places.insert(entry.key, place);
        slots.entries.push(entry);
        change.is_set = true;
        change
    }

    /// Removes expired entries among the next few, and where the table is full the least recently
    /// used of them.
    fn make_space(&self, slots: &mut Slots, now: Instant, change: &mut Change) {
        let is_full = slots.entries.len() >= self.max_keys;
        let checks = if is_full { CHECKS_IF_FULL } else { CHECKS };
        let mut oldest: Option<(Instant, u64)> = None;
        for _ in 0..checks {
            if slots.hand >= slots.entries.len() {
                slots.hand = 0;
            }
            let Some(entry) = slots.entries.get(slots.hand) else {
                return;
            };
            let (used, key) = (entry.used, entry.key);
            if self.is_expired(entry, now) {
                // another entry moves to this place, and is checked next
                change.expired.extend(slots.remove(key, ExpiryCause::Ttl));
                continue;
            }
            if oldest.is_none_or(|(before, _)| used < before) {
                oldest = Some((used, key));
            }
            slots.hand += 1;
        }
        if let Some((_, key)) = oldest.filter(|_| slots.entries.len() >= self.max_keys) {
            change
                .expired
                .extend(slots.remove(key, ExpiryCause::Capacity));
        }
    }

    fn is_expired(&self, entry: &Entry, now: Instant) -> bool {
        now.saturating_duration_since(entry.used) >= self.ttl
    }
}

impl Slots {
    fn remove(&mut self, key: u64, cause: ExpiryCause) -> Option<AffinityExpired> {
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
    fn expire(self, cause: ExpiryCause) -> AffinityExpired {
        AffinityExpired {
            kind: self.kind,
            key: self.digest,
            set: self.set,
            server: self.server,
            cause,
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
            kind: KeyKind::User,
            digest: KeyDigest(u32::try_from(key).unwrap()),
            set: ReplicaSetId::new("test").unwrap(),
            server: server(on),
            used,
        }
    }

    #[test]
    fn a_key_keeps_its_server_until_it_was_unused_for_the_ttl() {
        let (table, start) = (Table::new(10, TTL), Instant::now());
        assert!(table.set(entry(1, 4, start), start, None).is_set);
        let mut now = start;
        for _ in 0..5 {
            now += TTL.checked_sub(Duration::from_millis(1)).unwrap();
            assert_eq!(table.find(1, now, true).unwrap().server, server(4));
        }
        assert_eq!(table.find(1, now + TTL, true), None);
        let change = table.set(entry(1, 5, now + TTL), now + TTL, None);
        assert!(change.is_set);
        assert_eq!(change.expired[0].cause, ExpiryCause::Ttl);
    }

    #[test]
    fn the_first_server_stays_until_it_is_lost() {
        let (table, now) = (Table::new(10, TTL), Instant::now());
        table.set(entry(1, 4, now), now, None);
        assert!(!table.set(entry(1, 5, now), now, None).is_set);
        let lost = |on| Some((server(on), ExpiryCause::Removed));
        assert!(!table.set(entry(1, 6, now), now, lost(5)).is_set);
        let change = table.set(entry(1, 6, now), now, lost(4));
        assert_eq!(change.expired[0].server, server(4));
        assert_eq!(table.find(1, now, false).unwrap().server, server(6));
    }

    #[test]
    fn the_least_recently_used_of_those_checked_leaves_a_full_table() {
        let (table, start) = (Table::new(8, TTL), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for key in 0..8 {
            table.set(entry(key, 0, at(key)), at(key), None);
        }
        table.find(0, at(9), true);
        let change = table.set(entry(9, 0, at(10)), at(10), None);
        let [gone] = &change.expired[..] else {
            panic!("one leaves")
        };
        assert_eq!(
            (gone.key, gone.cause),
            (KeyDigest(1), ExpiryCause::Capacity)
        );
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
                    let change = table.set(entry(key, on, now), now, None);
                    prop_assert_eq!(change.is_set, found.is_none());
                    if change.is_set {
                        model.insert(key, (server(on), now));
                    }
                }
                prop_assert!(table.len() <= max_keys);
            }
        }
    }
}
