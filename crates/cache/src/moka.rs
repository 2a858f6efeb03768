//! The store of one process: moka, bounded in bytes.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::Expiry;
use moka::notification::RemovalCause;
use moka::sync::Cache;

use crate::store::{Entry, Store, StoreUsage};

/// The store of one process: moka, bounded in bytes.
pub struct MokaStore {
    entries: Cache<u128, Entry, BuildHasherDefault<KeyHasher>>,
    evicted: Arc<AtomicU64>,
}

impl MokaStore {
    /// Keeps entries of `max_bytes` in all; 0 keeps none.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        let evicted = Arc::new(AtomicU64::new(0));
        let counter = evicted.clone();
        let entries = Cache::builder()
            .max_capacity(max_bytes)
            .weigher(|_, entry: &Entry| u32::try_from(entry.bytes()).unwrap_or(u32::MAX))
            .expire_after(FreeMemory)
            .eviction_listener(move |_, _, cause| {
                if cause == RemovalCause::Size {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            })
            .build_with_hasher(BuildHasherDefault::default());
        Self { entries, evicted }
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
        self.entries.get(&key)
    }

    fn put(&self, key: u128, entry: Entry) {
        self.entries.insert(key, entry);
    }

    fn clear(&self) {
        self.entries.invalidate_all();
    }

    /// Does moka's pending housekeeping first: its counts lag behind otherwise.
    fn usage(&self) -> StoreUsage {
        self.entries.run_pending_tasks();
        StoreUsage {
            entries: self.entries.entry_count(),
            bytes: self.entries.weighted_size(),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }
}

/// Lets moka drop what has ended. Its clock is not ours and cannot be paused, so this only frees
/// memory; what is served is decided by the entry's own expiry.
struct FreeMemory;

impl Expiry<u128, Entry> for FreeMemory {
    fn expire_after_create(
        &self,
        _: &u128,
        entry: &Entry,
        _: std::time::Instant,
    ) -> Option<Duration> {
        Some(entry.ttl())
    }

    // moka's default would keep the time of the entry that is replaced
    fn expire_after_update(
        &self,
        _: &u128,
        entry: &Entry,
        _: std::time::Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.ttl())
    }
}

/// Takes the key as its own hash: it is one, and a keyed one.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of a uniform hash is a uniform hash"
    )]
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tollgate_core::ToolOutput;

    use super::*;

    fn entry(bytes: usize, ttl: Duration) -> Entry {
        Entry::new(ToolOutput::text("x".repeat(bytes)), ttl, Instant::now())
    }

    #[test]
    fn a_replaced_entry_lives_as_long_as_the_new_one() {
        let store = MokaStore::new(1 << 20);
        store.put(1, entry(1, Duration::ZERO));
        store.put(1, entry(1, Duration::from_secs(3600)));
        assert_eq!(store.usage().entries, 1);
        assert!(store.get(1).is_some());
    }

    #[test]
    fn entries_are_weighed_and_the_bound_is_kept() {
        let store = MokaStore::new(100_000);
        for key in 0..1000_u128 {
            store.put(key << 64 | key, entry(1000, Duration::from_secs(3600)));
        }
        let usage = store.usage();
        assert!(usage.bytes <= 100_000, "{usage:?}");
        assert!(usage.entries > 40, "{usage:?}");
        assert_eq!(usage.evicted, 1000 - usage.entries);
    }

    #[test]
    fn no_room_keeps_nothing() {
        let store = MokaStore::new(0);
        store.put(1, entry(1, Duration::from_secs(3600)));
        assert_eq!(store.usage().entries, 0);
        assert!(store.get(1).is_none());
    }

    #[test]
    fn an_endless_lifetime_does_not_overflow() {
        let store = MokaStore::new(1 << 20);
        store.put(1, entry(1, Duration::MAX));
        assert!(store.get(1).is_some());
    }
}
