//! Stops sending calls to a server or tool that keeps failing.
//!
//! A [`BreakerLayer`] goes around one server's service and keeps a breaker for each of its tools,
//! or one for the whole server. The breakers are kept in a [`BreakerSet`], where the router asks
//! who is available and operators intervene. [`Circuit`] is one of them.
//!
//! **Rule.** A breaker opens after consecutive failures or, if configured, when the share of failed
//! or slow calls in a window is too large. While open it refuses calls. Then it is half-open: a
//! fixed number of calls pass as probes; one success closes it, one failure opens it for twice as
//! long. A dropped probe gives its place back, and one that never ends is written off. Failures of
//! calls that were in flight together count once, and so do the attempts of one call. Before a
//! whole server each tool that loses its connection counts once. A write that must not run twice
//! waits for a read to be the probe. `verdict.rs` defines what counts.
//!
//! **Errors.** [`ErrorKind::BreakerOpen`](callward_core::ErrorKind::BreakerOpen), not sent, with
//! the time to the next probe.
//!
//! **Order.** Inside the router, per server: the server's breaker, then the tool's, then the
//! concurrency limit and the attempt timeout. See `docs/resilience.md`.

mod circuit;
mod config;
#[cfg(all(test, shuttle))]
mod interleavings;
mod service;
mod set;
mod state;
mod status;
mod streak;
mod verdict;
mod window;

pub use circuit::{BreakerChange, Circuit, Permit};
pub use config::BreakerConfig;
pub use service::{Breaker, BreakerFuture, BreakerLayer};
pub use set::BreakerSet;
pub use status::{BreakerState, BreakerStatus, Rejection, Subject};
pub use verdict::{Verdict, judge_error_of_transport};
pub use window::WindowStatus;
