//! The limit of an attempt's time.
//!
//! **Rule.** An attempt ends when its server has sent neither a result nor progress for as long as
//! the tool's plan allows (`limits.attempt_timeout`). Each progress report restarts that time, up
//! to a cap on the whole attempt ([`Cap`]). Time in which a person decides counts toward neither.
//! The call's deadline ends the attempt in any case. The attempt's share of the time to the
//! deadline ([`Attempt::share`](callward_core::Attempt::share)) ends it only if a retry follows.
//!
//! **Readiness** is that of the inner service. **Clone:** nothing is shared. **Cancellation:** a
//! drop, or the end of the time, drops the inner call.
//!
//! **Errors.** [`Timeout`](callward_core::ErrorKind::Timeout) after limit, cap or share;
//! [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded) at the deadline, which does not
//! count against the server. Delivery is unknown. A call that arrives after its deadline is not
//! sent.
//!
//! **Order.** Next to the server, inside its concurrency limit. Needs tokio's timer.

mod bounds;
mod cap;
mod env;
mod future;
mod layer;
mod meter;
mod watch;

pub use cap::Cap;
pub use env::{TOOL_TIMEOUT_VAR, parse_tool_timeout};
pub use future::AttemptTimeoutFuture;
pub use layer::{AttemptTimeout, AttemptTimeoutLayer};
