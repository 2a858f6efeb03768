//! The limit of calls at once.
//!
//! **Rule.** A call takes a place of its tool, if the tool has places of its own, and then one of
//! its server. If there is none it waits, first come, first served. If too many wait already, one
//! of them is refused: the newest, or the one that has waited longest ([`Shed`]). Who is still in
//! line at its deadline is refused too. A place is free again as soon as the answer is there.
//! Optionally the number of places follows what the server bears ([`AdaptiveConfig`]).
//!
//! **Readiness** is that of the inner service: places are not taken in `poll_ready`, where a caller
//! that is ready and never calls would keep one.
//!
//! **Cancellation.** A call takes its place when it is first polled. A drop leaves the line, or
//! ends the inner call and frees its places; a place that was just given to it goes to the next.
//!
//! **Clone.** Clones share the limit. Each service a layer wraps has a limit of its own.
//!
//! **Errors.** Adds [`Overloaded`](callward_core::ErrorKind::Overloaded), not sent. It says how
//! many run and wait.
//!
//! **Telemetry.** [`ConcurrencyHandle::status`] tells the limit in force, how many run and wait,
//! and how many were refused.
//!
//! **Cost.** A free place costs one exchange of an atomic, and so does giving it back; no box, and
//! no lock while nobody waits. Only a call that has to wait costs a box.
//!
//! **Order.** Inside the breaker (a sick tool takes no place) and outside of the attempt timeout
//! (waiting for a place is not the server's slowness).

mod adaptive;
mod config;
mod future;
mod gate;
#[cfg(test)]
mod gate_tests;
#[cfg(all(test, shuttle))]
mod interleavings;
mod layer;
mod line;
mod service;
mod site;

pub use adaptive::{Adaptive, AdaptiveConfig, Sample, Signal};
pub use config::Shed;
pub use future::ConcurrencyLimitFuture;
pub use layer::ConcurrencyLimitLayer;
pub use service::ConcurrencyLimit;
pub use site::{ConcurrencyHandle, ConcurrencyStatus, PlacesStatus};
