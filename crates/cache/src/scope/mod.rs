//! Epochs: what a write leaves behind so that nobody reads what was before it.
//!
//! A scope is a piece of state that a write may touch. Its epoch is part of the key of everything
//! that was read from it, so raising it makes all of that unreachable at once, without a scan.
//!
//! # Which scopes there are
//!
//! Replica sets that share state are a [group](group::StateGroup); by default all are one. Each group
//! has two scopes: [`Any`](ScopeRef::Any), which every write to the group touches, and
//! [`Wide`](ScopeRef::Wide), which only those writes touch of which nobody said what they touch.
//! Beside these there are named ones, from the operator's [rules](crate::ScopeRules). A read of
//! which nothing is said watches `Any`; one with a rule watches `Wide` and the scopes it names. A
//! write of which nothing is said touches `Any` and `Wide`; one with a rule touches `Any` and the
//! scopes it names. So each pair meets unless both have rules, and then only if the rules name one
//! scope in common. Each tool has a scope of its own besides, which no write touches: raising it
//! forgets the tool's results.
//!
//! # Why that is enough
//!
//! The order of steps carries the proof. A write counts itself as in flight in each scope it
//! touches, raises its epoch, and only then is sent; answered, it raises the epoch again and only
//! then counts itself out. A reader takes the epochs of all scopes it watches, sees that no write
//! is in flight in any, and sees that all epochs are still the same. Epochs only grow, so between
//! the last of the first looks and the first of the second looks all of them stood still at once,
//! and nothing was being written: at one moment, then, the epochs were these and the state stood
//! still, and no write to it is sent before one of them is over. So all readers that share an entry
//! or a flight under the same epochs share it while the state stood still, or were themselves
//! running when it moved.
//!
//! Reads that begin while a write is in flight neither look up nor store nor join. The write may
//! land before one of them and after the other, and a third tool may have shown its effect in
//! between: no answer of one may be given to the other.

mod fold;
mod footprint;
mod group;
mod named;
mod rules;
mod table;
mod watch;
mod write;

pub(crate) use footprint::{Footprint, Touched};
pub use group::StateGroup;
pub use named::NamedScope;
pub use rules::{InvalidScope, ScopeRules, ScopeTemplate, ToolScopes};
pub(crate) use table::{ScopeRef, Scopes};
pub(crate) use watch::{Epochs, Unquiet, are_current, are_doubtful, epochs};
pub(crate) use write::WriteGuard;

use tokio::time::Instant;

use crate::sync::{AtomicU64, Ordering};

/// A moment on the cache's own clock; see [`Scopes::at`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    born: Instant,
    now: Instant,
}

impl Moment {
    /// Returns how many nanoseconds of that clock have passed.
    fn nanos(self) -> u64 {
        table::nanos(self.now.saturating_duration_since(self.born))
    }

    /// Says whether a time on that clock is still to come. Nearly always it is 0, which never is, and the
    /// moment need not be worked out.
    fn is_before(self, time: u64) -> bool {
        time != 0 && self.nanos() < time
    }
}

/// The epoch of one piece of state, and the writes that move it.
#[derive(Debug)]
pub(crate) struct Scope {
    epoch: AtomicU64,
    writing: AtomicU64,
    /// The moment until which a write may well land still.
    settled: AtomicU64,
    /// The moment until which one might.
    certain: AtomicU64,
}

// All orderings are SeqCst: the proof above speaks of one order of all steps. On x86-64 and
// AArch64 the loads on the hit path cost the same as weaker ones, or nearly.
impl Scope {
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            epoch: AtomicU64::new(epoch),
            writing: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            certain: AtomicU64::new(0),
        }
    }

    /// Returns the epoch that runs now.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Makes everything read from the scope unreachable; returns the epoch that begins.
    pub(crate) fn raise(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Says whether something is being written, or may still land.
    fn unquiet(&self, now: Moment) -> Option<Unquiet> {
        if self.writing.load(Ordering::SeqCst) != 0 {
            Some(Unquiet::Writing)
        } else if now.is_before(self.settled.load(Ordering::SeqCst)) {
            Some(Unquiet::Settling)
        } else {
            None
        }
    }

    /// Counts a write in; returns the epoch that begins, and how many others are counted in.
    fn enter(&self) -> (u64, u64) {
        let others = self.writing.fetch_add(1, Ordering::SeqCst);
        (self.raise(), others)
    }

    /// Says whether nothing is being written, and no write might still land.
    fn is_certain(&self, now: Moment) -> bool {
        self.unquiet(now).is_none() && !self.is_doubtful(now)
    }

    /// Counts a write in; returns the epoch that begins if the write is alone: one that might still land
    /// overlaps, too, as it would undo what the repeat of this one is then not sent for.
    fn enter_alone(&self, now: Moment) -> Option<u64> {
        let (epoch, others) = self.enter();
        let settled = !now.is_before(self.settled.load(Ordering::SeqCst));
        (others == 0 && settled && !self.is_doubtful(now)).then_some(epoch)
    }

    /// Counts a write out; returns the epoch that begins.
    fn leave(&self) -> u64 {
        let epoch = self.raise();
        self.writing.fetch_sub(1, Ordering::SeqCst);
        epoch
    }

    /// Keeps the scope unquiet until the first time, and doubtful until the second.
    fn settle(&self, settled: u64, certain: u64) {
        self.settled.fetch_max(settled, Ordering::SeqCst);
        self.certain.fetch_max(certain, Ordering::SeqCst);
    }

    /// Says whether a write might still land, though it is not waited for any more. Whoever has taken the
    /// epoch of the scope before sees the doubt of each write that ended before that epoch.
    fn is_doubtful(&self, now: Moment) -> bool {
        now.is_before(self.certain.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;
