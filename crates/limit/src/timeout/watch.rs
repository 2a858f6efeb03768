//! A progress sink that measures the attempt and forwards to the caller's sink.

use std::sync::Arc;
use std::task::Waker;

use callward_core::ProgressSink;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::meter::Meter;

/// Measures progress and the time in which a person decides.
pub(crate) struct ProgressWatch {
    /// The caller's sink.
    next: Option<Arc<dyn ProgressSink>>,
    /// With the task to wake when the person has decided: until then it has no timer.
    state: Mutex<(Meter, Option<Waker>)>,
}

impl ProgressWatch {
    pub(crate) fn before(next: Option<Arc<dyn ProgressSink>>) -> Self {
        let state = Mutex::new((Meter::new(Instant::now()), None));
        Self { next, state }
    }

    /// Reads the meter. Keeps the waker while a person decides.
    pub(crate) fn read(&self, waker: &Waker) -> Meter {
        let (meter, paused) = &mut *self.state.lock();
        if meter.person.is_open() {
            *paused = Some(waker.clone());
        }
        *meter
    }
}

impl ProgressSink for ProgressWatch {
    fn report(&self, params: &[u8]) {
        self.state.lock().0.report(Instant::now());
        if let Some(next) = &self.next {
            next.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        let woken = {
            let (meter, paused) = &mut *self.state.lock();
            let is_over = meter.person.wait(waits, Instant::now().into_std());
            paused.take_if(|_| is_over)
        };
        // the timer must be set again; outside the lock, which the woken task takes
        if let Some(waker) = woken {
            waker.wake();
        }
        if let Some(next) = &self.next {
            next.waits_for_person(waits);
        }
    }
}
