//! One write, from just before it is sent to its end.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use super::table::nanos;
use super::{Epochs, Moment, ScopeRef};

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
    touched: SmallVec<[Touched; 2]>,
    /// Empty, and so no memory, for a write whose result is not kept.
    watched: Vec<Watched>,
    settling: Duration,
    began: Moment,
    ended: bool,
}

/// A scope that the write moves.
#[derive(Debug)]
struct Touched {
    scope: ScopeRef,
    begun: u64,
    alone: bool,
}

impl Touched {
    /// Counts the write out; returns the epoch it leaves behind if nothing else happened meanwhile.
    fn leave(&self) -> Option<u64> {
        let epoch = self.scope.scope().leave();
        (self.alone && epoch == self.begun + 1).then_some(epoch)
    }
}

/// A scope that the write's own result depends on.
#[derive(Debug)]
struct Watched {
    scope: ScopeRef,
    /// The epoch before the write, if the scope was quiet then. Counts only if it is not touched.
    before: Option<u64>,
}

impl Watched {
    /// Returns the epoch of a scope that this write does not touch, if no other did meanwhile.
    fn undisturbed(&self, now: Moment) -> Option<u64> {
        let scope = self.scope.scope();
        self.before
            .filter(|before| scope.unquiet(now).is_none() && scope.epoch() == *before)
    }
}

impl WriteGuard {
    /// Counts a write in. It must be sent after this, and not before.
    ///
    /// `watched` is what the repeat of the write would look at; empty if its result is not kept.
    pub(crate) fn begin(
        touched: impl IntoIterator<Item = ScopeRef>,
        watched: impl IntoIterator<Item = ScopeRef>,
        settling: Duration,
        began: Moment,
    ) -> Self {
        let before = |scope: &ScopeRef| {
            let epoch = scope.scope().epoch();
            scope.scope().unquiet(began).is_none().then_some(epoch)
        };
        let watched = watched
            .into_iter()
            .map(|scope| Watched {
                before: before(&scope),
                scope,
            })
            .collect();
        let mut guard = Self {
            touched: SmallVec::new(),
            watched,
            settling,
            began,
            ended: false,
        };
        for scope in touched {
            // counted twice in one scope, a write would overlap with itself
            if !guard.touched.iter().any(|other| other.scope.is(&scope)) {
                let (begun, alone) = scope.scope().enter(began);
                guard.touched.push(Touched {
                    scope,
                    begun,
                    alone,
                });
            }
        }
        guard
    }

    /// Returns when the write was counted in.
    pub(crate) const fn began(&self) -> Instant {
        self.began.now
    }

    /// Counts the write out. Returns the epochs of what it watches, if the write is all that
    /// happened there in between: no other write overlapped, and none may still land.
    pub(crate) fn end(mut self, outcome: Outcome, now: Instant) -> Option<Epochs> {
        self.close(outcome, now)
    }

    fn close(&mut self, outcome: Outcome, now: Instant) -> Option<Epochs> {
        self.ended = true;
        let now = self.moment(now);
        if outcome == Outcome::MayLand {
            let until = now.nanos().saturating_add(nanos(self.settling));
            for touched in &self.touched {
                touched.scope.scope().settle(until);
            }
            tracing::debug!("a write may still land: not caching until it has settled");
        }
        let left: SmallVec<[Option<u64>; 2]> = self.touched.iter().map(Touched::leave).collect();
        // after that, so that what a read finds quiet is what was left behind
        let epoch_of = |watched: &Watched| {
            let own = self
                .touched
                .iter()
                .position(|of| of.scope.is(&watched.scope));
            match own {
                Some(own) => left.get(own).copied().flatten(),
                None => watched.undisturbed(now),
            }
        };
        match outcome {
            Outcome::Known => self.watched.iter().map(epoch_of).collect(),
            Outcome::MayLand => None,
        }
    }

    fn moment(&self, now: Instant) -> Moment {
        Moment { now, ..self.began }
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if !self.ended {
            self.close(Outcome::MayLand, Instant::now());
        }
    }
}
