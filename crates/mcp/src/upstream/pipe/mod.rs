//! Servers on the other end of a pipe: children, and anything a connector yields.

mod batch;
mod child;
mod connection;
mod link;
pub(super) mod memory;
mod session;
mod supervisor;
mod waiters;

pub(super) use link::{End, PipeLink};
