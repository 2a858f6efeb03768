//! One write, from just before it is sent to its end.

use tokio::time::Instant;

use super::table::nanos;
use super::{Epochs, Moment, ScopeRef, Scopes, Touched};
use crate::settling::Settling;

/// One write in flight, until its [`end`](Self::end).
#[derive(Debug)]
#[must_use = "what it touches is not quiet before its end"]
pub(crate) struct WriteGuard {
    touched: Touched,
    /// When the cache's clock began.
    born: Instant,
    /// Boxed, as the results of most writes are not kept.
    keeping: Option<Box<Keeping>>,
}

/// What is needed to keep a write's result.
#[derive(Debug)]
struct Keeping {
    watched: Vec<Watched>,
    /// Of each scope that is touched, the epoch that the write began if it was alone there.
    begun: Vec<Option<u64>>,
}

/// A scope that the write's own result depends on.
#[derive(Debug)]
struct Watched {
    scope: ScopeRef,
    /// The epoch before the write, if the scope was certain then. Counts only if it is not touched.
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
    pub(crate) fn begin(touched: Touched, scopes: &Scopes) -> Self {
        for scope in touched.iter() {
            scope.scope().enter();
        }
        Self {
            touched,
            born: scopes.born(),
            keeping: None,
        }
    }

    /// Counts a write in. It must be sent after this, and not before.
    ///
    /// `watched` is what the repeat of the write would look at.
    pub(crate) fn begin_watching(
        touched: Touched,
        watched: impl IntoIterator<Item = ScopeRef>,
        began: Moment,
    ) -> Self {
        let before = |scope: &ScopeRef| {
            let epoch = scope.scope().epoch();
            scope.scope().is_certain(began).then_some(epoch)
        };
        let watched = watched.into_iter().map(|scope| Watched {
            before: before(&scope),
            scope,
        });
        let watched = watched.collect();
        let begun = touched.iter().map(|of| of.scope().enter_alone(began));
        let keeping = Keeping {
            watched,
            begun: begun.collect(),
        };
        Self {
            keeping: Some(Box::new(keeping)),
            touched,
            born: began.born,
        }
    }

    /// Counts the write out. Returns the epochs of what it watches, if the write is all that
    /// happened there in between: no other write overlapped, and none might still land. `None` if nothing
    /// is kept.
    pub(crate) fn end(self, settling: Settling, now: Instant) -> Option<Epochs> {
        let now = Moment {
            born: self.born,
            now,
        };
        let is_done = settling == Settling::DONE;
        if !is_done {
            let until = |time| now.nanos().saturating_add(nanos(time));
            let (settled, certain) = (until(settling.unsettled), until(settling.doubtful));
            for scope in self.touched.iter() {
                scope.scope().settle(settled, certain);
            }
        }
        let Some(keeping) = self.keeping.filter(|_| is_done) else {
            for scope in self.touched.iter() {
                scope.scope().leave();
            }
            return None;
        };
        let Keeping { watched, begun } = *keeping;
        // the epoch it leaves behind, if nothing else happened meanwhile
        let leave = |(of, begun): (&ScopeRef, &Option<u64>)| {
            let epoch = of.scope().leave();
            begun
                .is_some_and(|begun| epoch == begun + 1)
                .then_some(epoch)
        };
        let left: Vec<_> = self.touched.iter().zip(&begun).map(leave).collect();
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
