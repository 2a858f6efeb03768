//! The limit of an attempt's time.
//!
//! **Rule.** An attempt ends when its server has kept us waiting for as long as its tool's plan
//! allows (`limits.attempt_timeout`). Each progress report of the server starts that time anew, up
//! to a cap on all of it ([`Cap`]). Time in which a person is waited for counts against neither.
//! The call's deadline is a moment that somebody outside has named and keeps to, and ends it sooner.
//! So does the attempt's share of the time to it
//! ([`Attempt::share`](callward_core::Attempt::share)), a person's time not counted, but only if
//! another attempt is sure to follow: that is asked when the share is over, and if the answer is no,
//! the attempt goes on. One that was cut short for nothing would be a failure of our own making.
//!
//! **Readiness** is that of the inner service. **Clone:** nothing is shared; each attempt has a
//! time of its own. **Cancellation:** a drop drops the inner call; so does the end of the time.
//!
//! **Errors.** [`Timeout`](callward_core::ErrorKind::Timeout) if limit, cap or the attempt's share was
//! reached, so that a repeat is possible; [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded)
//! if the call's deadline was, which is no evidence against the server. Delivery is unknown: the
//! call was handed over and may still run. A call that is late on arrival is not handed over. The
//! message states the limit, the cap, and when the last progress was.
//!
//! **Progress.** The server is always asked for it: the call gets a
//! [`ProgressSink`](callward_core::ProgressSink) of this layer's own, which passes reports on to the
//! caller's. A report notes the time and wakes nobody; the timer looks when it fires, and sets
//! itself anew.
//!
//! **Cost.** One small allocation for the sink. A server that answers at once costs no timer and,
//! without a deadline, no look at the clock. Needs a tokio runtime with time enabled.
//!
//! **Order.** Next to the server, inside of its concurrency limit: waiting for a place is not the
//! server's slowness.

mod config;
mod env;
mod future;
mod layer;
mod meter;
mod service;
mod sink;
mod terms;

pub use config::{Cap, TimeoutConfig};
pub use env::{InvalidToolTimeout, TOOL_TIMEOUT_VAR, parse_tool_timeout};
pub use future::AttemptTimeoutFuture;
pub use layer::AttemptTimeoutLayer;
pub use service::AttemptTimeout;
