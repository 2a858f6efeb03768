//! Whose pauses they are: our own, or somebody else's.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use crate::Pauses;

/// The pauses of one call, in place of [`Backoff`](crate::Backoff).
///
/// Only the length of the pauses is left to it. Whether a call may be retried at all, what a server
/// asks for, the deadline and the budget are decided as with any other schedule.
pub trait Schedule: Send {
    /// Returns the pause before the next retry; `None` ends the call with its last failure. `step`
    /// says which retry it is.
    fn next(&mut self, step: &Step) -> Option<Duration>;
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn next(&mut self, step: &Step) -> Option<Duration> {
        (**self).next(step)
    }
}

/// Which retry of a call a pause is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Counts from 0.
    pub retry: u32,
    /// The step that the plan of the call would begin with: half of what it usually takes, or the
    /// profile's default.
    pub first: Duration,
}

impl Step {
    /// States a step.
    #[must_use]
    pub const fn new(retry: u32, first: Duration) -> Self {
        Self { retry, first }
    }
}

/// Makes the schedule of each call that has a retry coming. Any function that returns a schedule
/// does.
///
/// ```
/// use std::time::Duration;
/// use callward_retry::{RetryConfig, RetryLayer, Schedule, Step};
///
/// struct Twice(u32);
///
/// impl Schedule for Twice {
///     fn next(&mut self, step: &Step) -> Option<Duration> {
///         self.0 = self.0.checked_sub(1)?;
///         Some(step.first)
///     }
/// }
///
/// let layer = RetryLayer::new(RetryConfig::default())?.with_schedule(|| Twice(2));
/// # Ok::<_, callward_core::InvalidConfig>(())
/// ```
pub trait MakeSchedule: Send + Sync + 'static {
    /// Makes the schedule of one call. It must neither block nor panic.
    fn schedule(&self) -> Box<dyn Schedule>;
}

impl<F, S> MakeSchedule for F
where
    F: Fn() -> S + Send + Sync + 'static,
    S: Schedule + 'static,
{
    fn schedule(&self) -> Box<dyn Schedule> {
        Box::new(self())
    }
}

impl fmt::Debug for dyn MakeSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeSchedule")
    }
}

/// The pauses of one call.
pub(crate) enum Running {
    Ours(Pauses),
    // the lock is never taken: it only lets what must not be shared stand in what may be
    Theirs(Mutex<Box<dyn Schedule>>),
}

impl Running {
    pub(crate) fn next(&mut self, step: &Step) -> Option<Duration> {
        match self {
            Self::Ours(pauses) => pauses.next(),
            Self::Theirs(schedule) => schedule
                .get_mut()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .next(step),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(pauses) => pauses.fmt(f),
            Self::Theirs(_) => f.write_str("Theirs"),
        }
    }
}
