//! A scripted time share of an attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{Share, TimeShare};

/// Creates a share of this length. With `ends`, the attempt ends when it is over.
pub fn share(time: Duration, ends: bool) -> Share {
    Arc::new(Fixed {
        time,
        ends,
        has_ended: AtomicBool::new(false),
    })
}

#[derive(Debug)]
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
