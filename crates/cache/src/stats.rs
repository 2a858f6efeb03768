//! What the cache did, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::store::StoreUsage;

/// What the cache did since it was built, and what it keeps now.
///
/// Each call counts once, when it is decided: as hit, miss, joined, invalidation or bypassed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// Answered from the cache.
    pub hits: u64,
    /// Reads that were looked up, not found, and sent.
    pub misses: u64,
    /// Answered with the result of an identical read that was already running.
    pub joined: u64,
    /// Results stored.
    pub stored: u64,
    /// Writes sent: each made the entries of its replica set unreachable.
    pub invalidations: u64,
    /// Sent without a look-up: the plan says so, the arguments have no fingerprint, or a write was
    /// in flight or had not settled.
    pub bypassed: u64,
    /// Entries dropped to make room.
    pub evicted: u64,
    /// Entries kept now, unreachable ones included until they expire or make room.
    pub entries: u64,
    /// Bytes these take.
    pub bytes: u64,
}

/// The counters behind [`CacheStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) joined: Counter,
    pub(crate) stored: Counter,
    pub(crate) invalidations: Counter,
    pub(crate) bypassed: Counter,
}

impl Counters {
    pub(crate) fn snapshot(&self, usage: StoreUsage) -> CacheStats {
        CacheStats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            joined: self.joined.get(),
            stored: self.stored.get(),
            invalidations: self.invalidations.get(),
            bypassed: self.bypassed.get(),
            evicted: usage.evicted,
            entries: usage.entries,
            bytes: usage.bytes,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
