//! The lean store: quick_cache, for who counts nanoseconds.

use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};
use tokio::time::Instant;

use super::entry::Entry;
use super::hasher::KeyHasher;
use super::{Admission, Cause, Store, StoreUsage, Watcher};

/// The lean store: quick_cache, bounded in bytes.
///
/// A hit costs a fraction of what it does with [`MokaStore`](super::MokaStore), and an entry takes
/// less room. In return it looks at use alone, not at what an entry is worth; its bound holds for
/// each of its parts, of which there are four for each processor unless the store is small, and one
/// entry can be no larger than a part; and below a few hundred entries it finds less.
pub struct LeanStore {
    entries: Cache<u128, Entry, Weigh, BuildHasherDefault<KeyHasher>, Ends>,
    ends: Ends,
}

#[derive(Debug, Clone)]
struct Weigh;

/// What happens to an entry at its end.
#[derive(Clone, Default)]
struct Ends {
    watcher: Arc<OnceLock<Watcher>>,
    evicted: Arc<AtomicU64>,
}

impl LeanStore {
    /// Keeps entries of `max_bytes` in all; 0 keeps none.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        let ends = Ends::default();
        let expected = usize::try_from(max_bytes / EXPECTED).unwrap_or(usize::MAX);
        let entries = Cache::with(
            expected,
            max_bytes,
            Weigh,
            BuildHasherDefault::default(),
            ends.clone(),
        );
        Self { entries, ends }
    }
}

impl Ends {
    fn tell(&self, entry: &Entry, cause: Cause) {
        entry.discharge();
        if let Some(watcher) = self.watcher.get() {
            watcher(entry, cause);
        }
    }
}

impl Weighter<u128, Entry> for Weigh {
    fn weight(&self, _: &u128, entry: &Entry) -> u64 {
        weight(entry)
    }
}

/// What went in one call, told when the store's lock is free again.
#[derive(Default)]
struct Gone {
    /// The key that is put: what goes under it is replaced.
    put: Option<u128>,
    entries: Vec<(u128, Entry)>,
    ends: Option<Ends>,
}

impl Drop for Gone {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take() else {
            return;
        };
        for (key, entry) in self.entries.drain(..) {
            if !entry.is_servable_stale(Instant::now()) {
                ends.tell(&entry, Cause::Expired);
            } else if self.put == Some(key) {
                ends.tell(&entry, Cause::Replaced);
            } else {
                ends.evicted.fetch_add(1, Ordering::Relaxed);
                ends.tell(&entry, Cause::Size);
            }
        }
    }
}

impl Lifecycle<u128, Entry> for Ends {
    type RequestState = Gone;

    fn on_evict(&self, gone: &mut Gone, key: u128, entry: Entry) {
        gone.ends.get_or_insert_with(|| self.clone());
        gone.entries.push((key, entry));
    }
}

impl fmt::Debug for LeanStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeanStore")
            .field("entries", &self.entries.len())
            .field("bytes", &self.entries.weight())
            .finish_non_exhaustive()
    }
}

impl Store for LeanStore {
    fn get(&self, key: u128) -> Option<Entry> {
        let entry = self.entries.get(&key)?;
        entry.touch();
        Some(entry)
    }

    fn peek(&self, key: u128) -> Option<Entry> {
        self.entries.peek(&key)
    }

    fn put(&self, key: u128, entry: Entry) -> Admission {
        let bytes = weight(&entry);
        // 97 in a hundred of a part are the most that one entry may take
        let part = self.entries.shard_capacity();
        if bytes > part / 100 * 97 + part % 100 * 97 / 100 {
            self.remove(key);
            return Admission::TooLarge;
        }
        entry.charge(bytes);
        let mut gone = Gone::default();
        gone.put = Some(key);
        self.entries.insert_with_lifecycle(key, entry, &mut gone);
        Admission::Stored
    }

    fn remove(&self, key: u128) {
        if let Some((_, entry)) = self.entries.remove(&key) {
            self.ends.tell(&entry, Cause::Cleared);
        }
    }

    fn clear(&self) {
        for (_, entry) in self.entries.drain() {
            self.ends.tell(&entry, Cause::Cleared);
        }
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage {
            entries: self.entries.len() as u64,
            bytes: self.entries.weight(),
            evicted: self.ends.evicted.load(Ordering::Relaxed),
        }
    }

    fn watch(&self, watcher: Watcher) {
        if self.ends.watcher.set(watcher).is_err() {
            tracing::debug!("a store is watched already: the second watcher is told nothing");
        }
    }
}

/// What an entry takes in this store.
fn weight(entry: &Entry) -> u64 {
    entry.bytes() + OVERHEAD
}

/// What quick_cache spends on an entry: key, pointer, list links, its share of the table and of the
/// keys it remembers. Measured with a counting allocator; `tests/memory.rs` holds it to the truth.
const OVERHEAD: u64 = 112;

/// How many bytes an entry is expected to take, for sizing the parts.
const EXPECTED: u64 = 2048;
