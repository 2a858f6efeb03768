//! Limits around one server: of calls at once, and of time.
//!
//! Ordinary layers, each usable alone. Around one server they stand in this order, from outside to
//! inside: [`ConcurrencyLimit`], [`AttemptTimeout`], the server.

mod concurrency;
mod timeout;

pub use concurrency::{ConcurrencyLimit, ConcurrencyLimitFuture, ConcurrencyLimitLayer};
pub use timeout::{AttemptTimeout, AttemptTimeoutFuture, AttemptTimeoutLayer};
