//! Epochs: what a write leaves behind so that nobody reads what was before it.
//!
//! A scope is the state a write may touch; here, a replica set. Its epoch is part of every key, so
//! raising it makes all entries of the scope unreachable at once, without a scan.
//!
//! The order of steps carries the proof. A write counts itself as in flight, raises the epoch, and
//! only then is sent; answered, it raises the epoch again and only then counts itself out. A reader
//! takes the epoch, sees that no write is in flight, and sees that the epoch is still the same: at
//! one moment, then, the epoch was `e` and nothing was being written, and no write is sent before
//! `e` is over. So all readers that share an entry or a flight of `e` share it while the state
//! stood still, or were themselves running when it moved.
//!
//! Reads that begin while a write is in flight neither look up nor store nor join. The write may
//! land before one of them and after the other, and a third tool may have shown its effect in
//! between: no answer of one may be given to the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::ReplicaSetId;

use crate::sync::{AtomicU64, Ordering};

/// The epoch of one replica set, and the writes that move it.
#[derive(Debug)]
pub(crate) struct Scope {
    set: ReplicaSetId,
    digest: u128,
    epoch: AtomicU64,
    writing: AtomicU64,
    born: Instant,
    /// Nanoseconds after `born` until which a write may still land.
    settled: AtomicU64,
}

// All orderings are SeqCst: the proof above speaks of one order of all steps. On x86-64 and
// AArch64 the loads on the hit path cost the same as weaker ones, or nearly.
impl Scope {
    pub(crate) fn new(set: ReplicaSetId, digest: u128, now: Instant) -> Self {
        Self {
            set,
            digest,
            epoch: AtomicU64::new(0),
            writing: AtomicU64::new(0),
            born: now,
            settled: AtomicU64::new(0),
        }
    }

    /// Returns the digest of the replica set's name.
    pub(crate) fn digest(&self) -> u128 {
        self.digest
    }

    /// Returns the epoch if nothing is being written and no write may still land.
    pub(crate) fn quiet_epoch(&self, now: Instant) -> Option<u64> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let quiet = self.writing.load(Ordering::SeqCst) == 0
            && self.is_settled(now)
            && self.epoch.load(Ordering::SeqCst) == epoch;
        quiet.then_some(epoch)
    }

    /// Says whether entries of this epoch can still be reached.
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::SeqCst) == epoch
    }

    /// Makes all entries unreachable; returns the epoch that begins.
    pub(crate) fn raise(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Counts a write in. It must be sent after this, and not before.
    pub(crate) fn begin_write(self: &Arc<Self>, settling: Duration, now: Instant) -> WriteGuard {
        let others = self.writing.fetch_add(1, Ordering::SeqCst);
        let epoch = self.raise();
        WriteGuard {
            scope: self.clone(),
            settling,
            epoch,
            // a write that may still land overlaps, too
            alone: others == 0 && self.is_settled(now),
            ended: false,
        }
    }

    fn is_settled(&self, now: Instant) -> bool {
        let settled = self.settled.load(Ordering::SeqCst);
        settled == 0 || self.nanos(now) >= settled
    }

    fn settle(&self, until: u64) {
        self.settled.fetch_max(until, Ordering::SeqCst);
        tracing::debug!(set = %self.set, "a write may still land: not caching until it has settled");
    }

    fn nanos(&self, now: Instant) -> u64 {
        let age = now.saturating_duration_since(self.born).as_nanos();
        u64::try_from(age).unwrap_or(u64::MAX)
    }
}

/// What is known of a write that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It will not land from now on: it was answered, or never sent.
    Known,
    /// It may still land.
    MayLand,
}

/// One write in flight. Dropped without [`end`](Self::end), the write may still land.
#[derive(Debug)]
pub(crate) struct WriteGuard {
    scope: Arc<Scope>,
    settling: Duration,
    epoch: u64,
    alone: bool,
    ended: bool,
}

impl WriteGuard {
    /// Counts the write out. Returns the epoch it produced, if that is all that happened to the
    /// scope in between: no other write overlapped, and none may still land.
    pub(crate) fn end(mut self, outcome: Outcome, now: Instant) -> Option<u64> {
        self.close(outcome, now)
    }

    fn close(&mut self, outcome: Outcome, now: Instant) -> Option<u64> {
        self.ended = true;
        let scope = &self.scope;
        if outcome == Outcome::MayLand {
            let settling = u64::try_from(self.settling.as_nanos()).unwrap_or(u64::MAX);
            scope.settle(scope.nanos(now).saturating_add(settling));
        }
        let produced = scope.raise();
        scope.writing.fetch_sub(1, Ordering::SeqCst);
        let undisturbed = self.alone && outcome == Outcome::Known && produced == self.epoch + 1;
        undisturbed.then_some(produced)
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if !self.ended {
            self.close(Outcome::MayLand, Instant::now());
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const SETTLING: Duration = Duration::from_secs(60);

    fn scope(now: Instant) -> Arc<Scope> {
        Arc::new(Scope::new(ReplicaSetId::new("test").unwrap(), 1, now))
    }

    #[test]
    fn a_write_is_a_new_epoch_when_sent_and_another_when_answered() {
        let now = Instant::now();
        let scope = scope(now);
        let before = scope.quiet_epoch(now).unwrap();
        let write = scope.begin_write(SETTLING, now);
        assert_eq!(scope.quiet_epoch(now), None);
        assert!(!scope.is_current(before));
        let produced = write.end(Outcome::Known, now);
        assert_eq!(produced, Some(before + 2));
        assert_eq!(scope.quiet_epoch(now), produced);
    }

    #[test]
    fn overlapping_writes_have_no_epoch_of_their_own() {
        let now = Instant::now();
        for first_ends_first in [true, false] {
            let scope = scope(now);
            let first = scope.begin_write(SETTLING, now);
            let second = scope.begin_write(SETTLING, now);
            let (one, other) = if first_ends_first {
                (first, second)
            } else {
                (second, first)
            };
            assert_eq!(one.end(Outcome::Known, now), None);
            assert_eq!(scope.quiet_epoch(now), None);
            assert_eq!(other.end(Outcome::Known, now), None);
            assert!(scope.quiet_epoch(now).is_some());
        }
    }

    #[test]
    fn a_purge_in_between_leaves_nothing_to_keep() {
        let now = Instant::now();
        let scope = scope(now);
        let write = scope.begin_write(SETTLING, now);
        scope.raise();
        assert_eq!(write.end(Outcome::Known, now), None);
    }

    #[test]
    fn a_write_that_may_land_keeps_the_scope_unquiet_until_it_settles() {
        let now = Instant::now();
        let scope = scope(now);
        assert_eq!(
            scope.begin_write(SETTLING, now).end(Outcome::MayLand, now),
            None
        );
        let almost = now + SETTLING - Duration::from_nanos(1);
        assert_eq!(scope.quiet_epoch(almost), None);
        assert!(scope.quiet_epoch(now + SETTLING).is_some());
        // sent before the other one had settled: it may be overwritten after its own answer
        let write = scope.begin_write(SETTLING, almost);
        assert_eq!(write.end(Outcome::Known, now + SETTLING), None);
    }

    #[test]
    fn a_dropped_write_may_land() {
        let now = Instant::now();
        let scope = scope(now);
        drop(scope.begin_write(SETTLING, now));
        assert_eq!(scope.quiet_epoch(now), None);
        assert!(scope.quiet_epoch(now + 2 * SETTLING).is_some());
    }

    #[test]
    fn an_endless_settling_time_does_not_overflow() {
        let now = Instant::now();
        let scope = scope(now);
        drop(scope.begin_write(Duration::MAX, now));
        assert_eq!(scope.quiet_epoch(now + SETTLING), None);
    }
}
