//! The limit of an attempt's time.
//!
//! **Rule.** An attempt ends when its server has kept us waiting for as long as its tool's plan
//! allows (`limits.attempt_timeout`). Each progress report of the server starts that time anew, up
//! to a cap on all of it ([`Cap`]). Time in which a person is waited for counts against neither.
//! The attempt's own end ([`Attempt::until`](tollgate_core::Attempt::until)) and the call's
//! deadline are moments, and end it sooner; a person's time moves the former, up to the latter,
//! which somebody outside has named and keeps to.
//!
//! **Readiness** is that of the inner service. **Clone:** nothing is shared; each attempt has a
//! time of its own. **Cancellation:** a drop drops the inner call; so does the end of the time.
//!
//! **Errors.** [`Timeout`](tollgate_core::ErrorKind::Timeout) if limit, cap or the attempt's end was
//! reached, so that a repeat is possible; [`DeadlineExceeded`](tollgate_core::ErrorKind::DeadlineExceeded)
//! if the call's deadline was, which is no evidence against the server. Delivery is unknown: the
//! call was handed over and may still run. A call that is late on arrival is not handed over: not
//! sent, and [`Overloaded`](tollgate_core::ErrorKind::Overloaded) if only the attempt is late. The message states the limit, the cap, and when the last progress was.
//!
//! **Progress.** The server is always asked for it: the call gets a
//! [`ProgressSink`](tollgate_core::ProgressSink) of this layer's own, which passes reports on to the
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
