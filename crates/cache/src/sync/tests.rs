//! Doubles that let a scheduler choose the next step: as much of each type as this crate uses.
//!
//! Each operation of a double is one step. For tokio's semaphore that is enough: it has its own
//! loom tests.

use std::sync::PoisonError;

use shuttle::sync::MutexGuard;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::AcquireError;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// A point at which another task may run first.
#[derive(Debug, Default)]
struct Step(AtomicBool);

impl Step {
    fn take(&self) {
        self.0.load(Ordering::SeqCst);
    }
}

/// A semaphore.
#[derive(Debug)]
pub(crate) struct Semaphore {
    step: Step,
    permits: tokio::sync::Semaphore,
}

impl Semaphore {
    pub(crate) fn new(permits: usize) -> Self {
        Self {
            step: Step::default(),
            permits: tokio::sync::Semaphore::new(permits),
        }
    }

    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.step.take();
        let permit = self.permits.acquire().await?;
        let step = &self.step;
        Ok(SemaphorePermit {
            step,
            permit: Some(permit),
        })
    }

    pub(crate) fn add_permits(&self, n: usize) {
        self.step.take();
        self.permits.add_permits(n);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.step.take();
        self.permits.is_closed()
    }

    pub(crate) fn close(&self) {
        self.step.take();
        self.permits.close();
    }
}

/// One permit, returned by dropping it.
#[derive(Debug)]
pub(crate) struct SemaphorePermit<'a> {
    step: &'a Step,
    permit: Option<tokio::sync::SemaphorePermit<'a>>,
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        self.step.take();
        self.permit.take();
    }
}

/// No time passes here: it never times out.
pub(crate) async fn timeout_at<F: Future>(_: Instant, future: F) -> Result<F::Output, Elapsed> {
    Ok(future.await)
}

/// A lock. A call that panicked while it held one left a whole value: each change is one step.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
