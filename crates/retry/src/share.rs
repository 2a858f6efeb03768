//! The share of an attempt, which ends it only for a retry that is paid for.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::TimeShare;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::budget::Hold;
use crate::deadline::{Outlook, ends_in_time};

/// What an attempt has of the time to the deadline.
///
/// When it is over, the retry is taken out of the budget, before the attempt is ended: an attempt
/// that was ended and then not retried would have been better off without us. The retry is put back
/// if it comes to nothing, by whoever drops this last or takes it out.
pub(crate) struct Paid {
    /// Not known before the attempt begins, if it waits for a breaker: that may end at any moment.
    time: OnceLock<Duration>,
    outlook: Outlook,
    deadline: Instant,
    pay: Box<dyn Fn() -> Option<Hold> + Send + Sync>,
    hold: Mutex<Option<Hold>>,
    has_ended: AtomicBool,
}

impl Paid {
    /// Of an attempt that begins at a moment, or `waits` from then on. `None` if it gets all the time
    /// there is in any case.
    pub(crate) fn of(
        outlook: Outlook,
        begin: Instant,
        waits: bool,
        pay: impl Fn() -> Option<Hold> + Send + Sync + 'static,
    ) -> Option<Self> {
        let time = outlook.share()?;
        Some(Self {
            time: if waits { OnceLock::new() } else { time.into() },
            deadline: begin.checked_add(outlook.left)?,
            outlook,
            pay: Box::new(pay),
            hold: Mutex::new(None),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Takes the retry that was paid for.
    pub(crate) fn take(&self) -> Option<Hold> {
        self.hold.lock().take()
    }
}

impl TimeShare for Paid {
    /// Asked first by whoever times the attempt, when it begins.
    fn time(&self) -> Duration {
        *self.time.get_or_init(|| {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let outlook = Outlook {
                left,
                ..self.outlook
            };
            outlook.share().unwrap_or(left)
        })
    }

    fn end(&self, left: Duration) -> bool {
        // in line, the attempt may have lost the time that another one needs
        if !ends_in_time(left, self.outlook.pause, self.outlook.usual) {
            return false;
        }
        let mut hold = self.hold.lock();
        // of two attempts side by side, both end for the one retry
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
            .field("time", &self.time.get())
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
