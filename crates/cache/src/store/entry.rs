//! One stored answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use callward_core::ToolOutput;
use tokio::time::Instant;

use crate::fresh::Expiry;

/// One stored answer.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) output: ToolOutput,
    pub(crate) made: Instant,
    pub(crate) expiry: Expiry,
    /// The upstream time that a hit saves.
    pub(crate) cost: Duration,
    usual_cost: Duration,
    /// Whether the entry was hit since it came to the front of the queue.
    hit: AtomicBool,
    /// How often it came to the end of the queue without a hit.
    passes: AtomicU32,
    /// Whether a call in the background fetches a new answer.
    is_refreshing: AtomicBool,
}

/// The one call that fetches a new answer in place of an entry, until it is dropped.
#[derive(Debug)]
pub(crate) struct RefreshGuard(Arc<Entry>);

impl RefreshGuard {
    /// Begins to refresh an entry; `None` if another call does already.
    pub(crate) fn begin(entry: &Arc<Entry>) -> Option<Self> {
        let is_first = !entry.is_refreshing.swap(true, Ordering::Relaxed);
        is_first.then(|| Self(entry.clone()))
    }
}

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.is_refreshing.store(false, Ordering::Relaxed);
    }
}

/// The bytes that an entry takes besides its body: this struct and the answer, the key, the
/// buffer's header, and moka's own. Measured with a counting allocator; a test compares it.
const OVERHEAD: u64 = size_of::<Entry>() as u64 + 384;

/// Below this time only use and size count.
const SLOW_THRESHOLD: Duration = Duration::from_millis(500);

impl Entry {
    /// Keeps `output` until its expiry, which counts from `made`. The body is copied, so that the
    /// buffer it came in is freed. A hit saves `cost`; `usual_cost` is what the tool states, or
    /// else what the call took.
    pub(crate) fn new(
        output: &ToolOutput,
        expiry: Expiry,
        made: Instant,
        cost: Duration,
        usual_cost: Duration,
    ) -> Self {
        Self {
            output: output.clone().compact(),
            made,
            expiry,
            cost,
            usual_cost,
            hit: AtomicBool::new(false),
            passes: AtomicU32::new(0),
            is_refreshing: AtomicBool::new(false),
        }
    }

    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.made)
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.age(now) < self.expiry.ttl
    }

    /// Returns `true` if the entry may be served at all: fresh, or marked as stale.
    pub(crate) fn is_servable_stale(&self, now: Instant) -> bool {
        self.age(now) < self.expiry.ttl.saturating_add(self.expiry.stale)
    }

    /// Returns the bytes that the entry takes in the store.
    pub(crate) fn weight(&self) -> u64 {
        self.output.body().len() as u64 + OVERHEAD
    }

    /// Returns the logarithm of the time that a hit saves per byte.
    pub(super) fn value(&self) -> f64 {
        let seconds = self.usual_cost.max(SLOW_THRESHOLD).as_secs_f64();
        let bytes = self.weight() as f64;
        (seconds / bytes).log2()
    }

    pub(super) fn note_hit(&self) {
        self.hit.store(true, Ordering::Relaxed);
    }

    /// Returns what use adds to the logarithm of the value at the end of the queue: 1 if the entry
    /// was hit since it came to the front, else 1 less for each earlier end without a hit.
    pub(super) fn take_bonus(&self) -> f64 {
        if self.hit.swap(false, Ordering::Relaxed) {
            self.passes.store(0, Ordering::Relaxed);
            1.0
        } else {
            -f64::from(self.passes.fetch_add(1, Ordering::Relaxed))
        }
    }
}
