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
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    meter: Meter,
    /// The task to wake when the person has decided: until then it has no timer.
    paused: Option<Waker>,
}

impl ProgressWatch {
    pub(crate) fn before(next: Option<Arc<dyn ProgressSink>>) -> Self {
        Self {
            next,
            inner: Mutex::default(),
        }
    }

    /// Reads the meter, and starts it on the first call. Keeps the waker while a person decides.
    pub(crate) fn read(&self, now: Instant, waker: &Waker) -> Meter {
        let mut inner = self.inner.lock();
        inner.meter.start(now);
        if inner.meter.is_paused() {
            match &mut inner.paused {
                Some(paused) => paused.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        inner.meter
    }
}

impl ProgressSink for ProgressWatch {
    fn report(&self, params: &[u8]) {
        self.inner.lock().meter.report(Instant::now());
        if let Some(next) = &self.next {
            next.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        let woken = {
            let mut inner = self.inner.lock();
            let resumed = inner.meter.wait_for_person(waits, Instant::now());
            if resumed { inner.paused.take() } else { None }
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
