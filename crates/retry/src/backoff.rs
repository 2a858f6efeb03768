//! Schedules of the `backoff` crate, behind the feature `backoff`.
//!
//! That crate is unmaintained; the feature is for users whose settings or policies are written for
//! it. [`schedule`] and [`cloned`] make the pauses of a retry layer from any [`Backoff`]. What is
//! retried, how often, `Retry-After`, deadline and budget stay the layer's.
//!
//! ```
//! use std::time::Duration;
//!
//! use callward_retry::backoff::backoff::exponential::ExponentialBackoffBuilder;
//! use callward_retry::backoff::{TokioClock, cloned};
//! use callward_retry::{RetryConfig, RetryLayer};
//!
//! let backoff = ExponentialBackoffBuilder::<TokioClock>::new()
//!     .with_initial_interval(Duration::from_millis(200))
//!     .with_max_elapsed_time(Some(Duration::from_secs(20)))
//!     .build();
//! let mut config = RetryConfig::default();
//! config.max_attempts = 5;
//! let layer = RetryLayer::new(config)?.with_schedule(cloned(backoff));
//! # Ok::<_, callward_core::InvalidConfig>(())
//! ```

use std::time::{Duration, Instant};

pub use ::backoff;
use ::backoff::Clock;
pub use ::backoff::backoff::Backoff;

use crate::{MakeSchedule, Schedule, Step};

/// Tokio's clock, which tests can pause.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// Makes a schedule from a function that makes a [`Backoff`] for each call.
pub fn schedule<F, B>(make: F) -> impl MakeSchedule
where
    F: Fn() -> B + Send + Sync + 'static,
    B: Backoff + Send + Sync + 'static,
{
    move || {
        let mut backoff = make();
        backoff.reset();
        Adapted(backoff)
    }
}

/// Makes a schedule from a [`Backoff`] that is cloned and reset for each call.
pub fn cloned<B>(backoff: B) -> impl MakeSchedule
where
    B: Backoff + Clone + Send + Sync + 'static,
{
    schedule(move || backoff.clone())
}

struct Adapted<B>(B);

impl<B: Backoff + Send + Sync> Schedule for Adapted<B> {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.0.next_backoff()
    }
}
