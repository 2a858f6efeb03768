//! Schedules and errors of the [`backoff`] crate, for those who have them.
//!
//! That crate is unmaintained, and so is one that it brings along. Nothing here needs it: the retry
//! layer has [schedules of its own](callward_retry::Backoff). This crate exists for users whose
//! settings, or whose own policies, are written for it, and stands apart so that nobody else has it
//! in his tree. The facade has it behind the feature `backoff`.
//!
//! # Schedules
//!
//! [`schedule`] takes anything that makes a [`Backoff`], and [`cloned`] one that can be copied. Each
//! call gets a schedule of its own, reset, when its first retry is due. The pauses are then the
//! schedule's: its own jitter, its own ceiling, and `None` ends the call with its last failure. All
//! the rest stays as it is: what may be retried, how often at most, what a server asks for as a
//! floor, the deadline and the budget.
//!
//! `ExponentialBackoff` reads a clock of its own, to end after `max_elapsed_time`. With
//! [`TokioClock`] in the place of its default it keeps to a paused clock in tests.
//!
//! # Errors
//!
//! [`from_backoff`] and [`to_backoff`] go both ways. A transient error says that trying again might
//! help. It does not say that trying again is safe: that is for the tool's plan and the
//! [`Delivery`](callward_core::Delivery) to decide, so whoever turns one into a `ToolError` has to say
//! how far the call got.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use backoff::exponential::ExponentialBackoffBuilder;
//! use callward_backoff::{TokioClock, cloned};
//! use callward_retry::{RetryConfig, RetryLayer};
//!
//! let mine = ExponentialBackoffBuilder::<TokioClock>::new()
//!     .with_initial_interval(Duration::from_millis(200))
//!     .with_max_elapsed_time(Some(Duration::from_secs(20)))
//!     .build();
//! let config = RetryConfig::default().with_max_attempts(5);
//! let layer = RetryLayer::new(config)?.with_schedule(cloned(mine));
//! # Ok::<_, callward_core::InvalidConfig>(())
//! ```

mod clock;
mod error;
mod schedule;

pub use clock::TokioClock;
pub use error::{from_backoff, pass_on, to_backoff};
pub use schedule::{Adapted, cloned, schedule};

pub use ::backoff;
pub use ::backoff::backoff::Backoff;
