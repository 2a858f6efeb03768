//! The counts of the cache.

use std::time::Duration;

use callward_core::{ReplicaSetId, ToolName};
use serde::{Serialize, Serializer};

use crate::reason::{Bypasses, Evictions, Refusals};

/// The counts of the cache since it was built, and what it keeps now.
///
/// Each call counts once, when it is decided: as hit, stale, miss, joined, invalidation or bypass.
/// What the cache calls by itself counts as refresh or check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// What was done, by all tools together.
    #[serde(flatten)]
    pub counts: Counts,
    /// Entries evicted as the store was full.
    pub evicted: u64,
    /// Entries dropped, by cause.
    pub evictions: Evictions,
    /// Entries kept now, unreachable ones included until they are evicted.
    pub entries: u64,
    /// Bytes these take.
    pub bytes: u64,
}

impl std::ops::Deref for CacheStats {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

/// The contents of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreUsage {
    /// The number of entries.
    pub entries: u64,
    /// The bytes they take, keys and bookkeeping included.
    pub bytes: u64,
}

/// The counts of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// The replica set of the tool.
    pub set: ReplicaSetId,
    /// The tool, as its server calls it.
    pub tool: ToolName,
    /// What was done.
    #[serde(flatten)]
    pub counts: Counts,
}

/// How often each outcome occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Answered from the cache.
    pub hits: u64,
    /// Answered from the cache after the end of the entry's lifetime, while a new one is fetched.
    pub stale: u64,
    /// Answered with the result of an identical read that was already running.
    pub joined: u64,
    /// Reads that were looked up, not found, and sent.
    pub misses: u64,
    /// Of the misses, those that failed and were answered with the last result, stale.
    pub rescued: u64,
    /// New results fetched for stale ones, in the background.
    pub refreshes: u64,
    /// The same, where that failed.
    pub failed_refreshes: u64,
    /// Of the misses, kept results that were executed once more instead of answered, and had the
    /// same answer.
    pub verified: u64,
    /// The same, where the answer was a different one.
    pub differed: u64,
    /// Writes sent: each made unreachable what it may have changed.
    pub invalidations: u64,
    /// Sent without a look-up.
    pub bypassed: u64,
    /// The same, by reason.
    pub bypasses: Bypasses,
    /// Results stored.
    pub stored: u64,
    /// Results that were not kept, by reason.
    pub refusals: Refusals,
    /// Upstream time that was not spent, in milliseconds: for each call answered without a server,
    /// as long as the call took that brought the answer.
    #[serde(rename = "saved_ms", serialize_with = "millis")]
    pub saved: Duration,
}

impl Counts {
    /// Returns the share of look-ups that were answered without a server, 0 to 1; `None` if there
    /// was none.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        let answered = self.hits + self.stale + self.joined;
        let all = answered + self.misses;
        (all > 0).then(|| answered as f64 / all as f64)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.stale += other.stale;
        self.joined += other.joined;
        self.misses += other.misses;
        self.rescued += other.rescued;
        self.refreshes += other.refreshes;
        self.failed_refreshes += other.failed_refreshes;
        self.verified += other.verified;
        self.differed += other.differed;
        self.invalidations += other.invalidations;
        self.bypassed += other.bypassed;
        self.bypasses += other.bypasses;
        self.stored += other.stored;
        self.refusals += other.refusals;
        self.saved = self.saved.saturating_add(other.saved);
    }
}

pub(crate) fn millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64() * 1000.0)
}
