//! The progress of a long run, on request.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws a bar on standard error, where that is a terminal.
pub(crate) struct Watch {
    all: u64,
    done: AtomicU64,
}

impl Watch {
    pub(crate) fn new(all: u64) -> Self {
        Self {
            all,
            done: AtomicU64::new(0),
        }
    }

    /// This many more are done.
    pub(crate) fn advance(&self, by: u64) {
        let done = self.done.fetch_add(by, Ordering::Relaxed) + by;
        if !stderr().is_terminal() {
            return;
        }
        let percent = (done * 100 / self.all.max(1)).min(100);
        let filled = "#".repeat(usize::try_from(percent / 4).unwrap());
        // the lock, not the macro: a test's output is kept back until it has ended
        let _ = write!(
            stderr().lock(),
            "\r[{filled:.<25}] {percent:>3} %, {done} of {} calls",
            self.all
        );
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if stderr().is_terminal() {
            let _ = write!(stderr().lock(), "\r\u{1b}[K");
        }
    }
}
