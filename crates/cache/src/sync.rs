//! What epochs and flights synchronise with: atomics, locks, timers, and the places of a flight.
//!
//! Everywhere these are the real things, but in the tests that run under `--cfg shuttle`. There they
//! are doubles ([`stepped`]) that ask a scheduler before each step who goes next.

#[cfg(not(all(test, shuttle)))]
pub(crate) use {
    dashmap::DashMap,
    std::sync::OnceLock,
    std::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    tokio::sync::{Semaphore, SemaphorePermit},
    tokio::time::timeout_at,
};

#[cfg(all(test, shuttle))]
mod stepped;

#[cfg(all(test, shuttle))]
pub(crate) use {
    shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    stepped::{DashMap, OnceLock, Semaphore, SemaphorePermit, timeout_at},
};
