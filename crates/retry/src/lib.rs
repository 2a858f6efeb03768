//! Retries a failed call when that is safe.
//!
//! A [`RetryLayer`] puts `tower::retry` around a service. **Rule:** retry only if the call
//! certainly did not run or its tool is safe to retry, only a transient failure, only within
//! budget and deadline, and never if its client was asked something for it.
//!
//! | failure | safe tool | `OnlyUnsent` | other tool |
//! | --- | --- | --- | --- |
//! | transient, not sent | retry, elsewhere first | retry, elsewhere first | error |
//! | transient, answered (429, 5xx) | retry, after the stated time | error | error |
//! | transient, delivery unknown | retry | `OutcomeUnknown` | `OutcomeUnknown` |
//! | not transient | error | error | error |
//! | `isError: true` | an answer | an answer | an answer |
//!
//! **Pauses** are a [`Backoff`] or a custom [`Schedule`], with `Retry-After` as a floor. A call
//! with a deadline also waits for an open breaker. **Deadline:** all attempts have one, and each
//! gets a share that ends it only if a retry follows. **Budget:** a token bucket per replica set.
//!
//! **Errors.** Adds [`OutcomeUnknown`](callward_core::ErrorKind::OutcomeUnknown). Other errors keep
//! their kind, with attempts, history and why no retry followed.
//!
//! **Order.** Inside confirmation and cache, outside rate limit, router and breakers.
//!
//! See [`Retry`] for an example.

mod attempts;
#[cfg(feature = "backoff")]
pub mod backoff;
mod budget;
mod classify;
mod config;
mod deadline;
mod failure;
pub mod hedge;
#[cfg(all(test, shuttle))]
mod interleavings;
mod layer;
mod pause;
mod pauses;
mod policy;
mod schedule;
mod share;
mod shared;
mod stats;
mod sync;

pub use budget::BudgetStatus;
pub use classify::{RetryDecision, classify};
pub use config::RetryConfig;
pub use layer::{Retry, RetryLayer};
pub use pauses::{Backoff, Jitter};
pub use policy::RetryPolicy;
pub use schedule::{MakeSchedule, Schedule, Step};
pub use stats::{RetryOutcome, RetryOutcomes, RetryStats};
