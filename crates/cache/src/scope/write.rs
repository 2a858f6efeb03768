//! One write, from just before it is sent to its end.

use std::time::Duration;

use tokio::time::Instant;

use super::table::nanos;
use super::{Epochs, Moment, ScopeRef, Scopes, Touched};

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
    touched: Touched,
    settling: Duration,
    /// When the cache's clock began.
    born: Instant,
    /// Boxed, as the results of most writes are not kept.
    keeping: Option<Box<Keeping>>,
    ended: bool,
}

/// What is needed to keep a write's result.
#[derive(Debug)]
struct Keeping {
    began: Instant,
    watched: Vec<Watched>,
    /// Of each scope that is touched, the epoch that the write began if it was alone there.
    begun: Vec<Option<u64>>,
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
    /// Counts a write in whose result is not kept. It must be sent after this, and not before. What time
    /// it is need not be known.
    pub(crate) fn begin(touched: Touched, settling: Duration, scopes: &Scopes) -> Self {
        for scope in touched.iter() {
            scope.scope().enter();
        }
        Self {
            touched,
            settling,
            born: scopes.born(),
            keeping: None,
            ended: false,
        }
    }

    /// Counts a write in. It must be sent after this, and not before.
    ///
    /// `watched` is what the repeat of the write would look at.
    pub(crate) fn begin_watching(
        touched: Touched,
        watched: impl IntoIterator<Item = ScopeRef>,
        settling: Duration,
        began: Moment,
    ) -> Self {
        let before = |scope: &ScopeRef| {
            let epoch = scope.scope().epoch();
            scope.scope().unquiet(began).is_none().then_some(epoch)
        };
        let watched = watched.into_iter().map(|scope| Watched {
            before: before(&scope),
            scope,
        });
        let watched = watched.collect();
        let begun = touched.iter().map(|of| of.scope().enter_alone(began));
        let keeping = Keeping {
            began: began.now,
            watched,
            begun: begun.collect(),
        };
        Self {
            keeping: Some(Box::new(keeping)),
            touched,
            settling,
            born: began.born,
            ended: false,
        }
    }

    /// Returns when the write was counted in, if its result is to be kept.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.keeping.as_ref().map(|keeping| keeping.began)
    }

    /// Counts the write out. Returns the epochs of what it watches, if the write is all that
    /// happened there in between: no other write overlapped, and none may still land. `None` if nothing is
    /// kept. What time it is is asked for only where it matters.
    pub(crate) fn end(mut self, outcome: Outcome, now: impl FnOnce() -> Instant) -> Option<Epochs> {
        self.close(outcome, now)
    }

    fn close(&mut self, outcome: Outcome, now: impl FnOnce() -> Instant) -> Option<Epochs> {
        self.ended = true;
        let may_land = outcome == Outcome::MayLand;
        let keeping = self.keeping.take().filter(|_| !may_land);
        let now = (may_land || keeping.is_some()).then(|| Moment {
            born: self.born,
            now: now(),
        });
        if may_land && let Some(now) = now {
            let until = now.nanos().saturating_add(nanos(self.settling));
            for scope in self.touched.iter() {
                scope.scope().settle(until);
            }
            tracing::debug!("a write may still land: not caching until it has settled");
        }
        let (Some(Keeping { watched, begun, .. }), Some(now)) = (keeping.as_deref(), now) else {
            for scope in self.touched.iter() {
                scope.scope().leave();
            }
            return None;
        };
        // the epoch it leaves behind, if nothing else happened meanwhile
        let leave = |(of, begun): (&ScopeRef, &Option<u64>)| {
            let epoch = of.scope().leave();
            begun
                .is_some_and(|begun| epoch == begun + 1)
                .then_some(epoch)
        };
        let left: Vec<_> = self.touched.iter().zip(begun).map(leave).collect();
        // after that, so that what a read finds quiet is what was left behind
        let epoch_of = |watched: &Watched| {
            let own = self.touched.iter().position(|of| of.is(&watched.scope));
            match own {
                Some(own) => left.get(own).copied().flatten(),
                None => watched.undisturbed(now),
            }
        };
        watched.iter().map(epoch_of).collect()
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if !self.ended {
            self.close(Outcome::MayLand, Instant::now);
        }
    }
}
