//! The types by which tasks synchronise: atomics, locks, timers, permits and the store.
//!
//! Tests under `--cfg shuttle` use [doubles](tests) that ask a scheduler before each step which
//! task runs.

#[cfg(not(all(test, shuttle)))]
pub(crate) use {
    crate::store::MokaStore,
    dashmap::DashMap,
    std::sync::OnceLock,
    std::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    tokio::sync::{Semaphore, SemaphorePermit},
    tokio::time::timeout_at,
};

#[cfg(all(test, shuttle))]
mod tests;

#[cfg(all(test, shuttle))]
pub(crate) use {
    shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    tests::{DashMap, MokaStore, OnceLock, Semaphore, SemaphorePermit, timeout_at},
};
