//! What the budgets synchronise with.
//!
//! Everywhere this is the real thing, but in the tests that run under `--cfg shuttle`. There a
//! scheduler is asked before each step who goes next.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(test, shuttle))]
pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
