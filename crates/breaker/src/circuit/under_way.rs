//! The calls that are under way, and whether there were several at once.

use crate::permit::nanos;
use crate::run::PATIENCE;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Calls under way whose failures others may share. Changed by each such call, as are the counts of
/// references to its circuit.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    calls: AtomicU32,
    /// When there were two of them last, as the circuit counts time; 0 if never.
    overlapped: AtomicU64,
}

impl UnderWay {
    /// Takes note that a call begins, at a time that is only asked for where there are others.
    #[inline]
    pub(super) fn begin(&self, now: impl FnOnce() -> u64) {
        if self.calls.fetch_add(1, Ordering::Relaxed) > 0 {
            self.overlapped.store(now(), Ordering::Relaxed);
        }
    }

    /// Takes note that a call has ended.
    #[inline]
    pub(super) fn end(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many there are.
    pub(super) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Says whether there were two at once, not long before this time.
    pub(super) fn have_overlapped(&self, now: u64) -> bool {
        let last = self.overlapped.load(Ordering::Relaxed);
        last > 0 && now.saturating_sub(last) < nanos(PATIENCE)
    }
}
