//! The types by which tasks synchronise: atomics, locks, timers and permits.
//!
//! Tests under `--cfg shuttle` use [doubles](tests) that ask a scheduler before each step which
//! task runs.

#[cfg(not(all(test, shuttle)))]
pub(crate) use {
    parking_lot::Mutex,
    std::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    tokio::sync::{Semaphore, SemaphorePermit},
    tokio::time::timeout_at,
};

#[cfg(all(test, shuttle))]
mod tests;

#[cfg(all(test, shuttle))]
pub(crate) use {
    shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    tests::{Mutex, Semaphore, SemaphorePermit, timeout_at},
};
