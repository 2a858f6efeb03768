//! Epochs: how a write makes everything that was read before it unreachable.
//!
//! A scope is a piece of state that a write may change. Its epoch is part of the key of everything
//! that was read from it, so raising it invalidates all of that at once, without a scan.
//!
//! Replica sets that share state form a [group](group::StateGroup); by default all are one. Each
//! group has two scopes: `any`, which every write to the group changes, and `wide`, which only
//! writes without a [rule](crate::ScopeRules) change. Rules name further scopes. A read without a
//! rule depends on `any`; one with a rule depends on `wide` and the scopes it names. A write
//! without a rule changes `any` and `wide`; one with a rule changes `any` and the scopes it names.
//! So each read meets each write unless both have rules, and then only if these name a scope in
//! common. Each tool has a scope of its own besides, which no write changes: raising it forgets the
//! tool's results.
//!
//! # Proof
//!
//! A write counts itself as in flight in each scope of its write set, raises its epoch, and only
//! then is sent; answered, it raises the epoch again and only then counts itself out. A reader
//! takes the epochs of its read set, sees that no write is in flight in any, and sees that all
//! epochs are the same as before. Epochs only grow, so between the last of the first looks and the
//! first of the second looks all stood still at once: at one moment the epochs were these and
//! nothing was being written. So all readers that share an entry or a flight under the same epochs
//! share it while the state stood still, or were running when it moved. Reads that begin while a
//! write is in flight neither look up nor store nor join: the write may land before one and after
//! the other.

mod access;
mod epochs;
mod fold;
mod group;
mod rules;
mod table;
mod write;

pub(crate) use access::{ScopeSet, StateAccess};
pub(crate) use epochs::{Epochs, are_current, are_doubtful, epochs};
pub use group::StateGroup;
pub use rules::{ScopeRules, ScopeTemplate, ToolScopes};
pub(crate) use table::Scopes;
pub(crate) use write::WriteGuard;

use crate::reason::BypassReason;
use crate::sync::{AtomicU64, Ordering};

/// A moment, in nanoseconds of the cache's own clock; see [`Scopes::at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    fn is_before(self, time: u64) -> bool {
        self.0 < time
    }
}

/// The epoch of one piece of state, and the writes that change it.
#[derive(Debug)]
pub(crate) struct Scope {
    epoch: AtomicU64,
    writing: AtomicU64,
    /// Until this moment reads wait for a write that may still land.
    settled: AtomicU64,
    /// Until this moment one might still land.
    certain: AtomicU64,
    /// The same two, of tasks that are open.
    tasks_settled: AtomicU64,
    tasks_certain: AtomicU64,
}

// all orderings are SeqCst: the proof needs one order of all steps
impl Scope {
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            epoch: AtomicU64::new(epoch),
            writing: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            certain: AtomicU64::new(0),
            tasks_settled: AtomicU64::new(0),
            tasks_certain: AtomicU64::new(0),
        }
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Invalidates everything read from the scope; returns the epoch that begins.
    pub(crate) fn raise(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns why nothing may be read from the cache now, if so.
    fn conflict(&self, now: Moment) -> Option<BypassReason> {
        if self.writing.load(Ordering::SeqCst) != 0 {
            Some(BypassReason::Writing)
        } else if !self.is_settled(now) {
            Some(BypassReason::Settling)
        } else {
            None
        }
    }

    /// Returns `true` if nothing is being written, and no write might still land.
    fn is_certain(&self, now: Moment) -> bool {
        self.conflict(now).is_none() && !self.is_doubtful(now)
    }

    /// Counts a write in; returns the epoch that begins if the write is alone. One that might still
    /// land overlaps too, as it would undo the write whose repeat is then not sent.
    fn enter(&self, now: Moment) -> Option<u64> {
        let others = self.writing.fetch_add(1, Ordering::SeqCst);
        let epoch = self.raise();
        let is_certain = self.is_settled(now) && !self.is_doubtful(now);
        (others == 0 && is_certain).then_some(epoch)
    }

    fn is_settled(&self, now: Moment) -> bool {
        let until = [&self.settled, &self.tasks_settled];
        !until
            .into_iter()
            .any(|until| now.is_before(until.load(Ordering::SeqCst)))
    }

    /// Counts a write out; returns the epoch that begins.
    fn leave(&self) -> u64 {
        let epoch = self.raise();
        self.writing.fetch_sub(1, Ordering::SeqCst);
        epoch
    }

    fn settle(&self, settled: u64, certain: u64) {
        self.settled.fetch_max(settled, Ordering::SeqCst);
        self.certain.fetch_max(certain, Ordering::SeqCst);
    }

    /// Lets reads wait until these two moments for tasks that are open, or for none. Unlike
    /// [`settle`](Self::settle) this replaces what was known.
    pub(crate) fn wait_for_tasks(&self, until: Option<(Moment, Moment)>) {
        let (settled, certain) = until.unwrap_or((Moment(0), Moment(0)));
        self.tasks_settled.store(settled.0, Ordering::SeqCst);
        self.tasks_certain.store(certain.0, Ordering::SeqCst);
    }

    /// Returns `true` if a write might still land, though reads wait for it no longer. A call that
    /// took the scope's epoch before this sees the doubt of each write that ended before that
    /// epoch.
    fn is_doubtful(&self, now: Moment) -> bool {
        let until = [&self.certain, &self.tasks_certain];
        until
            .into_iter()
            .any(|until| now.is_before(until.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;
