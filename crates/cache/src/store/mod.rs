//! The store: moka, bounded in bytes, with one rule for slow results.
//!
//! # Rule
//!
//! moka evicts the least recently used entry first. *An evicted entry returns to the front of the
//! queue if its value is at least twice the mean of the entries evicted lately. The value is the
//! upstream time that a hit saves, divided by the bytes that the entry takes; it is doubled if the
//! entry was hit since it came to the front.* Each return without a hit halves it, so no entry
//! stays for ever. Times below half a second count as that: among fast results of one size this is
//! LRU with a second chance for what was hit (CLOCK).
//!
//! The mean is one of logarithms, so that one result that took an hour does not raise it much.
//!
//! An entry that has ended takes its bytes until it is evicted: the layer decides on its own clock
//! whether an entry may still be served.

use std::fmt;
use std::mem;
use std::sync::Arc;

use foldhash::fast::RandomState;
use moka::notification::RemovalCause;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::time::Instant;

mod entry;

pub(crate) use entry::{Entry, RefreshGuard};

use crate::config::CacheConfig;
use crate::reason::{EvictionCause, Evictions};
use crate::stats::StoreUsage;
use crate::sync::Mutex as StepMutex;

/// Entries are evicted in batches, each of this share of the store. One at a time would cost a
/// third of the calls per second once the store is full.
const BATCH: u64 = 256;

/// The store of one process, bounded in bytes. Cloning copies a pointer.
///
/// Several [`CacheLayer`](crate::CacheLayer)s may share one: each makes keys under a secret of its
/// own.
#[derive(Clone)]
pub struct MokaStore {
    /// A key is a keyed hash already, so a fast hasher places it.
    entries: Cache<u128, Arc<Entry>, RandomState>,
    evicted: Arc<Evicted>,
    capacity: u64,
    /// Held by everything that changes entries, so that a removed entry cannot return meanwhile.
    /// The bytes put since pending tasks were run. A scheduler of tests steps between changes, not
    /// within moka.
    changing: Arc<StepMutex<u64>>,
}

/// Everything that moka's eviction listener needs: it must not call moka.
#[derive(Debug, Default)]
struct Evicted {
    /// The mean value of the entries evicted lately; see [`Entry::value`].
    mean: Mutex<Option<f64>>,
    returning: Mutex<Vec<(u128, Arc<Entry>)>>,
    counts: Mutex<Evictions>,
}

impl MokaStore {
    /// Makes a store with the `max_bytes` of a config.
    #[must_use]
    pub fn new(config: &CacheConfig) -> Self {
        let evicted = Arc::<Evicted>::default();
        let listener = evicted.clone();
        let entries = Cache::builder()
            .max_capacity(config.max_bytes)
            .weigher(|_, entry: &Arc<Entry>| u32::try_from(entry.weight()).unwrap_or(u32::MAX))
            .eviction_policy(EvictionPolicy::lru())
            .eviction_listener(move |key, entry, cause| listener.removed(*key, entry, cause))
            .build_with_hasher(RandomState::default());
        Self {
            entries,
            evicted,
            capacity: config.max_bytes,
            changing: Arc::default(),
        }
    }

    /// Returns what the store holds. Runs moka's pending tasks first: for dashboards, not for
    /// calls.
    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        self.entries.run_pending_tasks();
        StoreUsage {
            entries: self.entries.entry_count(),
            bytes: self.entries.weighted_size(),
        }
    }

    pub(crate) fn evictions(&self) -> Evictions {
        *self.evicted.counts.lock()
    }

    /// Returns an entry, which may have ended, and notes the hit.
    pub(crate) fn get(&self, key: u128) -> Option<Arc<Entry>> {
        let entry = self.entries.get(&key)?;
        entry.note_hit();
        Some(entry)
    }

    /// Keeps an entry in place of any other of that key. Returns `false` if it is larger than the
    /// store; then the older entry is removed too.
    pub(crate) fn put(&self, key: u128, entry: Entry) -> bool {
        let mut pending = self.changing.lock();
        let weight = entry.weight();
        if weight > self.capacity {
            self.remove_both(key);
            return false;
        }
        self.entries.insert(key, Arc::new(entry));
        self.stop_return(key);
        *pending = pending.saturating_add(weight);
        // moka evicts nothing before the bound is reached
        let is_full = self.entries.weighted_size().saturating_add(*pending) > self.capacity;
        if is_full && *pending >= self.capacity / BATCH {
            *pending = 0;
            self.entries.run_pending_tasks();
            self.return_evicted();
        }
        true
    }

    pub(crate) fn remove(&self, key: u128) {
        let _changing = self.changing.lock();
        self.remove_both(key);
    }

    pub(crate) fn clear(&self) {
        let _changing = self.changing.lock();
        self.entries.invalidate_all();
        self.entries.run_pending_tasks();
        self.evicted.returning.lock().clear();
    }

    /// Removes an entry from moka first, which waits for the listener to end with this key.
    fn remove_both(&self, key: u128) {
        self.entries.invalidate(&key);
        self.stop_return(key);
    }

    fn stop_return(&self, key: u128) {
        self.evicted.returning.lock().retain(|(of, _)| *of != key);
    }

    /// Puts back the evicted entries that are worth it. Ends, as each return lowers the entry's
    /// value and raises the mean.
    fn return_evicted(&self) {
        loop {
            let returning = mem::take(&mut *self.evicted.returning.lock());
            if returning.is_empty() {
                return;
            }
            for (key, entry) in returning {
                self.entries.entry(key).or_insert(entry);
            }
            self.entries.run_pending_tasks();
        }
    }
}

impl fmt::Debug for MokaStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MokaStore").finish_non_exhaustive()
    }
}

impl Evicted {
    fn removed(&self, key: u128, entry: Arc<Entry>, cause: RemovalCause) {
        let cause = match cause {
            RemovalCause::Explicit => EvictionCause::Cleared,
            _ if !entry.is_servable_stale(Instant::now()) => EvictionCause::Expired,
            RemovalCause::Expired => EvictionCause::Expired,
            RemovalCause::Replaced => EvictionCause::Replaced,
            RemovalCause::Size => EvictionCause::Size,
        };
        if cause == EvictionCause::Size && self.is_retained(&entry) {
            self.returning.lock().push((key, entry));
        } else {
            self.counts.lock().add_one(cause);
        }
    }

    fn is_retained(&self, entry: &Entry) -> bool {
        /// The share of one entry in the mean: a few hundred entries make it.
        const SHARE: f64 = 1.0 / 128.0;
        let value = entry.value();
        let mean = {
            let mut mean = self.mean.lock();
            let before = mean.unwrap_or(value);
            *mean.insert(before + (value - before) * SHARE)
        };
        // in logarithms, with a tolerance for rounding
        value + entry.take_bonus() >= mean + 1.0 - 1e-6
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;
