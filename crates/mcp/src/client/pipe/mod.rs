//! Servers on the other end of a pipe: children, and anything a connector yields.

mod batch;
mod child;
mod connection;
mod link;
mod session;
mod stderr;
mod supervised;
mod supervisor;
mod waiters;

pub(super) use link::{End, PipeLink};
pub use supervised::start_advice;
#[cfg(target_os = "linux")]
pub(crate) use supervised::{NOT_STARTED, not_started};
