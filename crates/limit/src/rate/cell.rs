//! What governor keeps of a limit: one number. Kept here so that a cell can be given back, and seen
//! when nobody misses one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};

/// When the next cell would be due if none were kept, in nanoseconds since the limit was made; 0 if
/// none was ever taken. Clones are the same number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells(Arc<AtomicU64>);

impl Cells {
    /// Gives one cell back.
    pub(crate) fn give_back(&self, every: Duration) {
        let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        // 1, not 0: something was taken once. The closure always returns a value
        let _ = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |due| {
                Some(due.saturating_sub(every).max(1))
            });
    }

    /// Says whether all cells are there, as in a new limit.
    pub(crate) fn is_full(&self, since_made: Duration) -> bool {
        u128::from(self.0.load(Ordering::Acquire)) <= since_made.as_nanos()
    }
}

impl StateStore for Cells {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut due = self.0.load(Ordering::Acquire);
        loop {
            let (result, next) = decide((due != 0).then(|| due.into()))?;
            let swapped =
                self.0
                    .compare_exchange_weak(due, next.into(), Ordering::AcqRel, Ordering::Acquire);
            match swapped {
                Ok(_) => return Ok(result),
                Err(now) => due = now,
            }
        }
    }
}
