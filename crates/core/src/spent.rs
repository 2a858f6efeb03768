//! The time that a call spends outside the runtime.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that a call spends outside the runtime, as a sum over its attempts. The rest of the
/// call's time is the runtime's overhead.
///
/// Written by the layer that waits, when the wait is over. Waits that a dropped call did not finish
/// are not included. Attempts beside each other count twice.
#[derive(Debug, Default)]
pub struct Spent {
    server: AtomicU64,
    limits: AtomicU64,
    pauses: AtomicU64,
}

impl Spent {
    /// Adds time that a server had the call.
    pub fn add_server(&self, took: Duration) {
        add(&self.server, took);
    }

    /// Adds time that the call waited for a token or a permit.
    pub fn add_limits(&self, took: Duration) {
        add(&self.limits, took);
    }

    /// Adds a pause before a repeat.
    pub fn add_pause(&self, took: Duration) {
        add(&self.pauses, took);
    }

    /// Returns how long servers had the call.
    pub fn server(&self) -> Duration {
        read(&self.server)
    }

    /// Returns how long the call waited for tokens and permits.
    pub fn limits(&self) -> Duration {
        read(&self.limits)
    }

    /// Returns how long the call paused between attempts.
    pub fn pauses(&self) -> Duration {
        read(&self.pauses)
    }
}

fn add(sum: &AtomicU64, took: Duration) {
    // more than five hundred years are no time of a call
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    sum.fetch_add(nanos, Ordering::Relaxed);
}

fn read(sum: &AtomicU64) -> Duration {
    Duration::from_nanos(sum.load(Ordering::Relaxed))
}
