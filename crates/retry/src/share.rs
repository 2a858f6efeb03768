//! The share of an attempt, which ends it only for a repeat that is paid for.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tollgate_core::TimeShare;

use crate::budget::Hold;
use crate::deadline::{Outlook, ends_in_time};

/// What an attempt has of the time to the deadline.
///
/// When it is over, the repeat is taken out of the budget, before the attempt is ended: an attempt
/// that was ended and then not repeated would have been better off without us. The repeat is put back
/// if it comes to nothing, by whoever drops this last or takes it out.
pub(crate) struct Paid {
    time: Duration,
    /// The longest pause there can be before the repeat.
    pause: Duration,
    usual: Option<Duration>,
    pay: Box<dyn Fn() -> Option<Hold> + Send + Sync>,
    hold: Mutex<Option<Hold>>,
    has_ended: AtomicBool,
}

impl Paid {
    /// `None` if the attempt gets all the time there is.
    pub(crate) fn of(
        outlook: Outlook,
        pay: impl Fn() -> Option<Hold> + Send + Sync + 'static,
    ) -> Option<Self> {
        Some(Self {
            time: outlook.share()?,
            pause: outlook.pause,
            usual: outlook.usual,
            pay: Box::new(pay),
            hold: Mutex::new(None),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Takes the repeat that was paid for.
    pub(crate) fn take(&self) -> Option<Hold> {
        self.hold.lock().take()
    }
}

impl TimeShare for Paid {
    fn time(&self) -> Duration {
        self.time
    }

    fn end(&self, left: Duration) -> bool {
        // in line, the attempt may have lost the time that another one needs
        if !ends_in_time(left, self.pause, self.usual) {
            return false;
        }
        let mut hold = self.hold.lock();
        // of two attempts side by side, both end for the one repeat
        if hold.is_none() {
            *hold = (self.pay)();
        }
        let ends = hold.is_some();
        self.has_ended.fetch_or(ends, Ordering::Relaxed);
        ends
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Paid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paid")
            .field("time", &self.time)
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
