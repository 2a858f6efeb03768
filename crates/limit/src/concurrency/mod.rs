//! The limit of concurrent calls.
//!
//! **Rule.** A call takes a permit of its tool, if the tool has a limit of its own, and then one of
//! its server. Without a free permit it waits in a bounded queue, first in, first out. A full queue
//! refuses a call ([`Shed`] selects which); so does a deadline that comes too close. The permits
//! are free again as soon as the result is there.
//!
//! **Readiness** is that of the inner service. A permit is not taken in `poll_ready`, where a
//! caller that never calls would keep it.
//!
//! **Cancellation.** A dropped call leaves the queue, or releases its permits.
//!
//! **Clone.** Clones share the limit. Each service a layer wraps has a limit of its own.
//!
//! **Errors.** Adds [`Overloaded`](callward_core::ErrorKind::Overloaded), not sent, with the number
//! of calls in flight and in the queue.
//!
//! **Order.** Inside the breaker, so that a call it refuses takes no permit, and outside the
//! attempt timeout, so that waiting here does not count as the server's time.

mod layer;
mod permits;
mod queue;
mod service;

pub use layer::{ConcurrencyLimitLayer, Shed};
pub use permits::{ConcurrencyHandle, ConcurrencyStatus, PermitStatus};
pub use service::ConcurrencyLimit;
