//! The pauses of a call: our own, or those of a custom schedule.

use std::fmt;
use std::time::Duration;

use crate::pauses::Pauses;

/// The pauses of one call, in place of [`Backoff`](crate::Backoff).
///
/// It decides the length of the pauses alone, not whether a call is retried.
pub trait Schedule: Send + Sync {
    /// Returns the pause before the next retry; `None` ends the call with its last failure.
    fn next(&mut self, step: &Step) -> Option<Duration>;
}

impl Schedule for Pauses {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        Iterator::next(self)
    }
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn next(&mut self, step: &Step) -> Option<Duration> {
        (**self).next(step)
    }
}

/// The retry that a pause is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Its number, from 0.
    pub retry: u32,
    /// The first pause by the call's plan.
    pub first: Duration,
}

impl Step {
    /// Makes a step.
    #[must_use]
    pub const fn new(retry: u32, first: Duration) -> Self {
        Self { retry, first }
    }
}

/// Makes the schedule of each call that is retried. A function that returns a schedule does.
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

impl fmt::Debug for dyn Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedule")
    }
}

impl fmt::Debug for dyn MakeSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeSchedule")
    }
}
