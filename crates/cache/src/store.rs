//! Where entries are kept.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::ToolOutput;

/// One stored answer, and when it ends.
#[derive(Debug, Clone)]
pub struct Entry {
    output: ToolOutput,
    ttl: Duration,
    expires: Instant,
}

/// Keeps no entry longer than this, so that adding a lifetime to a clock never overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Entry {
    /// Keeps `output` for `ttl` from `now` on, a year at most.
    #[must_use]
    pub fn new(output: ToolOutput, ttl: Duration, now: Instant) -> Self {
        let ttl = ttl.min(LONGEST);
        Self {
            output,
            ttl,
            expires: now + ttl,
        }
    }

    /// Returns the answer.
    #[must_use]
    pub fn output(&self) -> &ToolOutput {
        &self.output
    }

    /// Returns how long the entry lives in all.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the answer, unless the entry has ended.
    #[must_use]
    pub fn into_fresh(self, now: Instant) -> Option<ToolOutput> {
        (now < self.expires).then_some(self.output)
    }

    /// Returns how many bytes the entry takes, key and bookkeeping included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.output.body().len() as u64 + OVERHEAD
    }
}

/// What an entry takes besides the body: the key, this struct, and what moka keeps about it
/// (two list nodes, a timer node, counters), rounded up.
const OVERHEAD: u64 = 384;

/// Where entries are kept. Called on the hit path: it must neither block nor panic.
///
/// A store may forget at any time. It need not look at expiry: the cache does, on its own clock.
/// Keys are keyed hashes, already uniform.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Returns the entry, if it is still there.
    fn get(&self, key: u128) -> Option<Entry>;

    /// Keeps an entry.
    fn put(&self, key: u128, entry: Entry);

    /// Forgets everything.
    fn clear(&self);

    /// Says what is kept.
    fn usage(&self) -> StoreUsage;
}

/// What a [`Store`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreUsage {
    /// How many entries there are.
    pub entries: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// How many entries were dropped to make room, since the start.
    pub evicted: u64,
}
