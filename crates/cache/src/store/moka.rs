//! The store of one process: moka, bounded in bytes, with lives given by worth.

use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use moka::ops::compute::Op;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::ends::{Ends, OnceWatcher, weight};
use super::entry::Entry;
use super::front::Front;
use super::hasher::KeyHasher;
use super::refusals::Refusals;
use super::returns::{Returns, Slot};
use super::worth::Worth;
use super::{Admission, Cause, Found, Store, StoreUsage, Watcher};

/// The store of one process: moka, bounded in bytes.
///
/// The least recently used entry goes first, but one that is worth its room then begins another
/// life: one that was hit, or one that was slow to make.
///
/// An entry that has ended takes room until it is met or its turn to go comes, and begins no other
/// life. moka could drop it in time, at the price of a timer for each entry and a look at it on each
/// hit; what is bounded anyway need not be swept.
pub struct MokaStore {
    entries: Cache<u128, Slot, BuildHasherDefault<KeyHasher>>,
    ends: Arc<Ends>,
    refusals: Refusals,
    /// How many bytes moka may keep.
    capacity: u64,
    /// Bytes put since moka last did its housekeeping, at most: it lets writes wait, and while they
    /// wait nothing is evicted for them.
    unsettled: AtomicU64,
    /// Held while what waits is brought back, so that nothing is brought back that was removed.
    bringing: Mutex<()>,
}

impl MokaStore {
    /// The slow threshold of [`new`](Self::new): 500 milliseconds.
    pub const SLOW_THRESHOLD: Duration = Duration::from_millis(500);

    /// Keeps entries of `max_bytes` in all, and up to 64 KiB more below 4 MiB; 0 keeps none. The slow
    /// threshold is [`SLOW_THRESHOLD`](Self::SLOW_THRESHOLD).
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self::with_slow_threshold(max_bytes, Self::SLOW_THRESHOLD)
    }

    /// Keeps entries of `max_bytes` in all. Results that took longer than `slow_threshold` are
    /// worth more room, in proportion; among all others only use and size decide.
    #[must_use]
    pub fn with_slow_threshold(max_bytes: u64, slow_threshold: Duration) -> Self {
        // what waits between two lives takes its room from the rest
        let waiting = max_bytes / 64;
        let (waiting, capacity) = if waiting < SMALL {
            (SMALL.min(max_bytes / 16), max_bytes)
        } else {
            (waiting, max_bytes - waiting)
        };
        let ends = Arc::new(Ends {
            worth: Worth::new(slow_threshold),
            front: Front::for_bytes(max_bytes),
            returns: Returns::new(waiting),
            watcher: OnceWatcher::default(),
            evicted: AtomicU64::new(0),
            era: AtomicU32::new(0),
        });
        let listener = ends.clone();
        let entries = Cache::builder()
            .max_capacity(capacity)
            .weigher(|_, slot: &Slot| u32::try_from(weight(&slot.entry)).unwrap_or(u32::MAX))
            .eviction_policy(EvictionPolicy::lru())
            .eviction_listener(move |key: Arc<u128>, slot, cause| listener.meet(*key, slot, cause))
            .build_with_hasher(BuildHasherDefault::default());
        Self {
            entries,
            ends,
            refusals: Refusals::default(),
            capacity,
            unsettled: AtomicU64::new(0),
            bringing: Mutex::new(()),
        }
    }

    fn get_behind_front(&self, key: u128) -> Option<Entry> {
        let slot = self
            .entries
            .get(&key)
            .or_else(|| self.ends.returns.find(key))?;
        if !self.ends.is_of_now(&slot) {
            return None;
        }
        slot.entry.touch();
        if self.ends.front.put(key, &slot.entry) && !self.holds(key, &slot.entry) {
            self.ends.front.remove(key);
        }
        Some(slot.entry)
    }

    /// Says why an entry is not to be kept, if so.
    fn refuse(&self, key: u128, entry: &Entry, bytes: u64) -> Option<Admission> {
        if bytes > self.capacity {
            return Some(Admission::TooLarge);
        }
        let full = self.entries.weighted_size() + bytes > self.capacity;
        let refused = full
            && self.ends.worth.is_too_cheap(entry, bytes)
            && !self.entries.contains_key(&key)
            && self.refusals.refuse(key);
        refused.then_some(Admission::TooCheap)
    }

    /// Says whether this very entry is kept under a key.
    fn holds(&self, key: u128, entry: &Entry) -> bool {
        let slot = self.entries.get(&key);
        slot.is_some_and(|slot| self.ends.is_of_now(&slot) && slot.entry.is(entry.inner()))
    }

    /// Has moka evict for what was put before too much waits.
    fn settle(&self, bytes: u64) {
        let unsettled = self.unsettled.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if unsettled > self.capacity / 128 {
            self.unsettled.store(0, Ordering::Relaxed);
            self.entries.run_pending_tasks();
        }
    }

    /// Brings back what waits, or as much of it as one `put` may be held up by.
    fn bring_back(&self) {
        // whoever is at it does it for all
        let Some(_bringing) = self.bringing.try_lock() else {
            return;
        };
        for (key, slot, bytes) in self.ends.returns.take(AT_ONCE) {
            if !self.ends.is_of_now(&slot) {
                self.ends.tell(&slot.entry, Cause::Cleared);
                continue;
            }
            let mut gone = None;
            self.entries.entry(key).and_compute_with(|present| {
                let newer = present
                    .as_ref()
                    .is_some_and(|present| present.value().entry.made() >= slot.entry.made());
                if newer {
                    gone = Some(slot.entry);
                    Op::Nop
                } else {
                    Op::Put(slot)
                }
            });
            match gone {
                Some(entry) => self.ends.tell(&entry, Cause::Replaced),
                None => self.settle(bytes),
            }
        }
    }
}

impl fmt::Debug for MokaStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MokaStore")
            .field("entries", &self.entries.entry_count())
            .field("bytes", &self.entries.weighted_size())
            .finish_non_exhaustive()
    }
}

impl Store for MokaStore {
    fn get(&self, key: u128) -> Option<Entry> {
        if let Some(entry) = self.ends.front.find(key) {
            entry.touch();
            return Some(entry);
        }
        self.get_behind_front(key)
    }

    fn look(&self, key: u128, now: Instant) -> Option<Found> {
        let in_front = self.ends.front.look(key, now);
        in_front.or_else(|| Some(self.get_behind_front(key)?.look(now)))
    }

    fn peek(&self, key: u128) -> Option<Entry> {
        if let Some(entry) = self.ends.front.find(key) {
            return Some(entry);
        }
        let kept = self.entries.get(&key);
        let slot = kept.or_else(|| self.ends.returns.find(key))?;
        self.ends.is_of_now(&slot).then_some(slot.entry)
    }

    fn put(&self, key: u128, entry: Entry) -> Admission {
        let bytes = weight(&entry);
        if let Some(refused) = self.refuse(key, &entry, bytes) {
            // what was there before is older than what was refused
            self.remove(key);
            return refused;
        }
        // what waits under the key is older, and must not outlive this one
        if let Some(slot) = self.ends.returns.remove(key) {
            self.ends.tell(&slot.entry, Cause::Replaced);
        }
        let entry = entry.keyed(key);
        entry.charge(bytes);
        let era = self.ends.era.load(Ordering::Acquire);
        self.entries.insert(key, Slot { entry, era });
        self.ends.front.remove(key);
        self.settle(bytes);
        self.bring_back();
        Admission::Stored
    }

    fn remove(&self, key: u128) {
        let _bringing = self.bringing.lock();
        // First from moka, which waits until the listener is through with this key.
        self.entries.invalidate(&key);
        self.ends.front.remove(key);
        if let Some(slot) = self.ends.returns.remove(key) {
            self.ends.tell(&slot.entry, Cause::Cleared);
        }
    }

    fn clear(&self) {
        self.ends.era.fetch_add(1, Ordering::AcqRel);
        self.entries.invalidate_all();
        for (_, slot, _) in self.ends.returns.take(usize::MAX) {
            self.ends.tell(&slot.entry, Cause::Cleared);
        }
        self.entries.run_pending_tasks();
        self.ends.front.clear();
    }

    /// Does moka's pending housekeeping first: its counts lag behind otherwise.
    fn usage(&self) -> StoreUsage {
        self.entries.run_pending_tasks();
        let (entries, bytes) = self.ends.returns.usage();
        StoreUsage {
            entries: self.entries.entry_count() + entries,
            bytes: self.entries.weighted_size() + bytes,
            evicted: self.ends.evicted.load(Ordering::Relaxed),
        }
    }

    fn watch(&self, watcher: Watcher) {
        if self.ends.watcher.0.set(watcher).is_err() {
            tracing::debug!("a store is watched already: the second watcher is told nothing");
        }
    }
}

/// So much may wait between two lives in a store of less than 4 MiB, beyond its bound, but no more than
/// a sixteenth of it: moka evicts in batches, and a share of a small store would be less than one.
const SMALL: u64 = 64 << 10;

/// How much one `put` brings back, at most. It makes room for one entry, and moka evicts several hundred
/// in a row: brought back by whoever comes next, they would hold up one caller for all the others.
const AT_ONCE: usize = 32;

#[cfg(test)]
mod tests {
    use callward_core::ToolOutput;
    use moka::notification::RemovalCause;

    use super::super::returns::Pushed;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Lets an entry wait as if moka had just evicted it; returns a newer one.
    fn wait(store: &MokaStore, key: u128) -> Entry {
        let now = Instant::now();
        let entry = Entry::new(ToolOutput::text("older"), HOUR, now);
        let slot = Slot { entry, era: 0 };
        let pushed = store.ends.returns.push(key, slot, 500);
        assert!(matches!(pushed, Pushed::Waits));
        Entry::new(
            ToolOutput::text("newer"),
            HOUR,
            now + Duration::from_secs(1),
        )
    }

    fn text(store: &MokaStore, key: u128) -> Option<String> {
        store.get(key).map(|entry| entry.output().to_text())
    }

    #[test]
    fn what_waits_is_found_counted_and_brought_back() {
        let store = MokaStore::new(1 << 20);
        let newer = wait(&store, 1);
        assert_eq!(text(&store, 1).as_deref(), Some("older"));
        assert_eq!((store.usage().entries, store.usage().bytes), (1, 500));
        store.put(2, newer);
        assert_eq!(store.ends.returns.usage(), (0, 0));
        assert_eq!(text(&store, 1).as_deref(), Some("older"));
    }

    #[test]
    fn one_put_brings_back_a_bounded_part_of_what_waits() {
        let store = MokaStore::new(64 << 20);
        let mut newer = wait(&store, 0);
        for key in 1..500 {
            newer = wait(&store, key);
        }
        store.put(1000, newer.clone());
        assert_eq!(store.ends.returns.usage().0, 500 - AT_ONCE as u64);
        assert_eq!(store.usage().entries, 501, "nothing is lost meanwhile");
        for key in 1001..1016 {
            store.put(key, newer.clone());
        }
        assert_eq!(store.ends.returns.usage().0, 0);
    }

    #[test]
    fn what_waits_never_takes_the_place_of_something_newer() {
        let store = MokaStore::new(1 << 20);
        let newer = wait(&store, 1);
        store.put(1, newer);
        assert_eq!(store.ends.returns.usage(), (0, 0));
        assert_eq!(text(&store, 1).as_deref(), Some("newer"));
        // nor once the newer one is gone, whoever brings back what waits
        let newer = wait(&store, 2);
        let bringing = store.bringing.lock();
        store.put(2, newer);
        store.entries.invalidate(&2);
        drop(bringing);
        assert_eq!(text(&store, 2), None);
    }

    #[test]
    fn what_waits_can_be_removed_and_cleared() {
        let store = MokaStore::new(1 << 20);
        let other = wait(&store, 1);
        store.remove(1);
        store.put(9, other.clone());
        assert_eq!(text(&store, 1), None);
        wait(&store, 1);
        store.clear();
        // one that moka evicts while all is cleared comes late
        wait(&store, 2);
        assert_eq!(text(&store, 2), None);
        store.put(9, other);
        assert_eq!((text(&store, 1), text(&store, 2)), (None, None));
        assert_eq!(store.usage().entries, 1);
    }

    #[test]
    fn what_has_ended_begins_no_other_life() {
        let store = MokaStore::new(1 << 20);
        for (ttl, waiting) in [(HOUR, 1), (Duration::ZERO, 1)] {
            let entry = Entry::new(ToolOutput::text("x"), ttl, Instant::now());
            entry.touch();
            let slot = Slot { entry, era: 0 };
            store.ends.meet(1, slot, RemovalCause::Size);
            assert_eq!(store.ends.returns.usage().0, waiting);
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let returns = Returns::new(1000);
        let entry = Entry::new(ToolOutput::text("x"), HOUR, Instant::now());
        let push = |key| {
            let entry = entry.clone();
            let pushed = returns.push(key, Slot { entry, era: 0 }, 500);
            matches!(pushed, Pushed::Waits)
        };
        assert_eq!([push(1), push(2), push(3)], [true, true, false]);
        assert_eq!(returns.take(usize::MAX).len(), 2);
        assert!(push(3));
    }
}
