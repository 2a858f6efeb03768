//! What a circuit synchronises with: atomics and a lock.
//!
//! Everywhere these are the real things, but in the tests that run under `--cfg shuttle`. There they
//! are doubles that ask a scheduler before each step who goes next.

#[cfg(not(all(test, shuttle)))]
pub(crate) use {
    parking_lot::Mutex,
    std::sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(all(test, shuttle))]
mod stepped;

#[cfg(all(test, shuttle))]
pub(crate) use {
    shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering},
    stepped::Mutex,
};
