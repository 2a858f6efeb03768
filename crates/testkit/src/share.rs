//! The share of an attempt that is ended by it, or not, as a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{Share, TimeShare};

/// Makes a share of this length. `ends`: whether the attempt ends when it is over.
#[must_use]
pub fn share(time: Duration, ends: bool) -> Share {
    Share::new(Arc::new(Fixed {
        time,
        ends,
        has_ended: AtomicBool::new(false),
    }))
}

struct Fixed {
    time: Duration,
    ends: bool,
    has_ended: AtomicBool,
}

impl TimeShare for Fixed {
    fn time(&self) -> Duration {
        self.time
    }

    fn end(&self, _left: Duration) -> bool {
        self.has_ended.fetch_or(self.ends, Ordering::Relaxed);
        self.ends
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}
