//! One write, from just before it is sent to its end.

use std::sync::Arc;

use super::table::nanos;
use super::{Epochs, Moment, Scope, ScopeSet};
use crate::settling::Settling;

/// One write in flight, until its [`end`](Self::end).
#[derive(Debug)]
#[must_use = "its write set conflicts with reads until it ends"]
pub(crate) struct WriteGuard {
    write_set: ScopeSet,
    /// Of each scope of the write set, the epoch that the write began if it was alone there.
    begun: Vec<Option<u64>>,
    /// The scopes that the repeat of the write depends on, with their epochs before the write where
    /// no write could still land. Empty if the result is not kept.
    repeat_set: Vec<(Arc<Scope>, Option<u64>)>,
}

impl WriteGuard {
    /// Counts a write in. It must be sent after this, and not before.
    ///
    /// `repeat_set` is what the repeat of the write would look at; `None` if its result is not
    /// kept.
    pub(crate) fn begin(write_set: ScopeSet, repeat_set: Option<&ScopeSet>, began: Moment) -> Self {
        let before = |scope: &Arc<Scope>| {
            let epoch = scope.epoch();
            (scope.clone(), scope.is_certain(began).then_some(epoch))
        };
        let repeat_set = repeat_set.into_iter().flat_map(|set| set.iter());
        let repeat_set = repeat_set.map(before).collect();
        let begun = write_set.iter().map(|scope| scope.enter(began)).collect();
        Self {
            write_set,
            begun,
            repeat_set,
        }
    }

    /// Returns the scopes that the write may change.
    pub(crate) const fn write_set(&self) -> &ScopeSet {
        &self.write_set
    }

    /// Counts the write out. Returns the epochs of its repeat set if nothing else happened there
    /// meanwhile: no other write overlapped, and none might still land. `None` if nothing is kept.
    pub(crate) fn end(self, settling: Settling, now: Moment) -> Option<Epochs> {
        let is_done = settling == Settling::DONE;
        if !is_done {
            let until = |time| now.0.saturating_add(nanos(time));
            let (settled, certain) = (until(settling.unsettled), until(settling.doubtful));
            for scope in self.write_set.iter() {
                scope.settle(settled, certain);
            }
        }
        let leave = |(scope, begun): (&Arc<Scope>, &Option<u64>)| {
            let epoch = scope.leave();
            (*begun == Some(epoch - 1)).then_some(epoch)
        };
        let left: Vec<_> = self.write_set.iter().zip(&self.begun).map(leave).collect();
        if !is_done || self.repeat_set.is_empty() {
            return None;
        }
        // after that, so that what a read finds without a conflict is what was left behind
        let epoch_of =
            |(scope, before): &(Arc<Scope>, Option<u64>)| match self.write_set.position(scope) {
                Some(own) => left.get(own).copied().flatten(),
                None => before
                    .filter(|before| scope.conflict(now).is_none() && scope.epoch() == *before),
            };
        self.repeat_set.iter().map(epoch_of).collect()
    }
}
