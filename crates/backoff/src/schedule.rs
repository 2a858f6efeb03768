//! A [`Backoff`] as the schedule of a retry layer.

use std::fmt;
use std::time::Duration;

use backoff::backoff::Backoff;
use callward_retry::{MakeSchedule, Schedule, Step};

/// Takes what makes a schedule: once for each call that has a retry coming.
///
/// ```
/// use std::time::Duration;
/// use backoff::backoff::Constant;
/// use callward_retry::RetryLayer;
///
/// let each_second = callward_backoff::schedule(|| Constant::new(Duration::from_secs(1)));
/// let layer = RetryLayer::default().with_schedule(each_second);
/// ```
pub fn schedule<F, B>(make: F) -> impl MakeSchedule
where
    F: Fn() -> B + Send + Sync + 'static,
    B: Backoff + Send + 'static,
{
    move || Adapted::new(make())
}

/// Takes a schedule that each call gets a copy of, reset.
pub fn cloned<B>(backoff: B) -> impl MakeSchedule
where
    B: Backoff + Clone + Send + Sync + 'static,
{
    schedule(move || backoff.clone())
}

/// A [`Backoff`] as the schedule of one call.
pub struct Adapted<B>(B);

impl<B: Backoff> Adapted<B> {
    /// Takes a schedule and resets it: the call that gets it begins now.
    #[must_use]
    pub fn new(mut backoff: B) -> Self {
        backoff.reset();
        Self(backoff)
    }
}

impl<B: Backoff + Send> Schedule for Adapted<B> {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.0.next_backoff()
    }
}

impl<B> fmt::Debug for Adapted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapted").finish_non_exhaustive()
    }
}
