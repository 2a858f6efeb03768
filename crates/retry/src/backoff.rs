//! Schedules and errors of the `backoff` crate, behind the feature `backoff`.
//!
//! That crate is unmaintained; the feature is for users whose settings or policies are written for
//! it. [`schedule`] and [`cloned`] make the pauses of a retry layer from any [`Backoff`]. What is
//! retried, how often, `Retry-After`, deadline and budget stay the layer's. [`from_backoff`] and
//! [`to_backoff`] convert errors. A transient error says that a retry may help, not that it is
//! safe, so the [`Delivery`] is beside it.
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

use std::fmt::Display;
use std::time::{Duration, Instant};

use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};

pub use ::backoff;
pub use ::backoff::backoff::Backoff;
use ::backoff::{Clock, Error};

use crate::{MakeSchedule, RetryDecision, Schedule, Step, classify};

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
pub fn cloned<B: Backoff + Clone + Send + Sync + 'static>(backoff: B) -> impl MakeSchedule {
    schedule(move || backoff.clone())
}

struct Adapted<B>(B);

impl<B: Backoff + Send + Sync> Schedule for Adapted<B> {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.0.next_backoff()
    }
}

/// Converts the error of a service, with how far the call got.
///
/// A transient error becomes a [`ServerFault`](ErrorKind::ServerFault), with its time as
/// `Retry-After`; a permanent one an [`InvalidCall`](ErrorKind::InvalidCall), which is never
/// retried.
///
/// ```
/// use callward_core::{Delivery, RetryRule};
/// use callward_retry::backoff::{backoff, from_backoff};
/// use callward_retry::{RetryDecision, classify};
///
/// let busy = backoff::Error::transient("the printer is busy");
/// let error = from_backoff(busy, Delivery::Unknown);
/// // a retry may print twice
/// assert_eq!(classify(RetryRule::Never, &error), RetryDecision::Fail);
/// ```
#[must_use]
pub fn from_backoff<E: Display>(error: Error<E>, delivery: Delivery) -> ToolError {
    match error {
        Error::Permanent(error) => {
            ToolError::new(ErrorKind::InvalidCall, delivery, error.to_string())
        }
        Error::Transient { err, retry_after } => {
            let mut error = ToolError::new(ErrorKind::ServerFault, delivery, err.to_string());
            error.retry_after = retry_after;
            error
        }
    }
}

/// Converts an error for a retry of that crate: transient, if the retry layer would retry it for a
/// tool with this rule, budget and deadline aside.
#[must_use]
pub fn to_backoff(rule: RetryRule, error: ToolError) -> Error<ToolError> {
    match classify(rule, &error) {
        RetryDecision::Fail => Error::Permanent(error),
        RetryDecision::Retry { floor } => Error::Transient {
            err: error,
            retry_after: floor,
        },
    }
}

/// Returns an error that passed through that crate. A retry layer does not retry a permanent one.
#[must_use]
pub fn pass_on(error: Error<ToolError>) -> ToolError {
    match error {
        // an error with attempts has been through a retry
        Error::Permanent(mut error) => {
            error.attempts = error.attempts.max(1);
            error
        }
        Error::Transient { err, retry_after } => match retry_after {
            Some(wait) => err.with_retry_after(wait),
            None => err,
        },
    }
}
