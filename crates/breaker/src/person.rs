//! How long a call waited for a person.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{PersonClock, ProgressSink};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Measures how long a call waits for a person, and forwards everything to the sink it had before.
pub(crate) struct Listener {
    outer: Option<Arc<dyn ProgressSink>>,
    clock: Mutex<PersonClock>,
}

impl Listener {
    pub(crate) fn new(outer: Option<Arc<dyn ProgressSink>>) -> Self {
        let clock = Mutex::default();
        Self { outer, clock }
    }

    /// Returns how long the call waited for a person up to now.
    pub(crate) fn waited(&self) -> Duration {
        self.clock.lock().time(Instant::now().into_std())
    }
}

impl ProgressSink for Listener {
    fn report(&self, params: &[u8]) {
        if let Some(outer) = &self.outer {
            outer.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        self.clock.lock().wait(waits, Instant::now().into_std());
        if let Some(outer) = &self.outer {
            outer.waits_for_person(waits);
        }
    }
}
