//! The atomics of the budget: shuttle's in the interleaving tests, std's elsewhere.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(test, shuttle))]
pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
