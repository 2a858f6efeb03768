//! Where progress reports go: noted here, and passed on.

use std::sync::Arc;
use std::task::Waker;

use callward_core::ProgressSink;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::meter::Meter;

/// Notes when the server got on, and while a person is waited for.
pub(crate) struct Watch {
    /// Where the caller wants reports to go.
    next: Option<Arc<dyn ProgressSink>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    meter: Meter,
    /// Who set no timer because a person is waited for.
    paused: Option<Waker>,
}

impl Watch {
    pub(crate) fn before(next: Option<Arc<dyn ProgressSink>>) -> Self {
        Self {
            next,
            inner: Mutex::default(),
        }
    }

    /// Reads the meter, which starts if it has not. The waker is kept while a person is waited for,
    /// and woken when that ends.
    pub(crate) fn read(&self, now: Instant, waker: &Waker) -> Meter {
        let mut inner = self.inner.lock();
        inner.meter.start(now);
        if inner.meter.is_asking() {
            match &mut inner.paused {
                Some(paused) => paused.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        inner.meter
    }
}

impl ProgressSink for Watch {
    fn report(&self, params: &[u8]) {
        self.inner.lock().meter.report(Instant::now());
        if let Some(next) = &self.next {
            next.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        let woken = {
            let mut inner = self.inner.lock();
            let over = inner.meter.ask(waits, Instant::now());
            if over { inner.paused.take() } else { None }
        };
        // a timer has to be set again; outside of the lock, which who is woken takes
        if let Some(waker) = woken {
            waker.wake();
        }
        if let Some(next) = &self.next {
            next.waits_for_person(waits);
        }
    }
}
