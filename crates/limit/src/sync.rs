//! What the gate synchronises with: atomics and a lock, from one door.
//!
//! Everywhere these are the real things, but in the tests that run under `--cfg shuttle`. There a
//! scheduler is asked before each step who goes next.

#[cfg(not(all(test, shuttle)))]
pub(crate) use {
    parking_lot::{Mutex, MutexGuard},
    std::sync::atomic::{AtomicU64, Ordering},
};

#[cfg(all(test, shuttle))]
pub(crate) use {
    shuttle::sync::MutexGuard,
    shuttle::sync::atomic::{AtomicU64, Ordering},
    stepped::Mutex,
};

#[cfg(all(test, shuttle))]
mod stepped {
    use shuttle::sync::MutexGuard;

    /// A lock without poisoning, as `parking_lot`'s.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }
}
