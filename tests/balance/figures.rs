//! What is counted while the world runs, and what comes of it.

use std::time::Duration;

use crate::world::{LENGTH, SERVERS, TURN};

/// What happened since the figures are taken.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Second by second: calls that arrived at servers that are struck, and at any.
    struck: Vec<(u64, u64)>,
    /// How long answered calls took.
    took: Vec<Duration>,
    failed: usize,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let struck = vec![(0, 0); whole(LENGTH)];
        Self {
            struck,
            ..Self::default()
        }
    }

    /// Counts a call that reached a server.
    pub(crate) fn arrived(&mut self, is_struck: bool, now: Duration) {
        if let Some((struck, all)) = self.struck.get_mut(whole(now)) {
            *struck += u64::from(is_struck);
            *all += 1;
        }
    }

    /// Counts a call that came to its end.
    pub(crate) fn done(&mut self, issued: Duration, ended: Duration, answered: bool) {
        if issued < TURN {
            return;
        }
        if answered {
            self.took.push(ended.saturating_sub(issued));
        } else {
            self.failed += 1;
        }
    }
}

/// What one policy made of one scenario, from the moment on at which something happens.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Within what time 99 of 100 calls were answered. None: never, because more of them failed. To
    /// leave those out would make a strategy look quick that sends calls where they fail.
    pub(crate) p99_ms: Option<f64>,
    /// Calls to servers that were struck, as a multiple of what they would get if all got the same:
    /// over all, and second by second.
    pub(crate) struck: f64,
    pub(crate) struck_by_second: Vec<f64>,
}

impl Figures {
    pub(crate) fn of(mut tally: Tally) -> Self {
        tally.took.sort_unstable();
        let calls = tally.took.len() + tally.failed;
        let p99 = tally.took.get(calls * 99 / 100);
        // one server is struck
        let multiple = |(part, of): (u64, u64)| (part * SERVERS as u64) as f64 / of.max(1) as f64;
        let since = &tally.struck[whole(TURN)..];
        let sum = |all: (u64, u64), one: &(u64, u64)| (all.0 + one.0, all.1 + one.1);
        Self {
            p99_ms: p99.map(|took| took.as_secs_f64() * 1e3),
            struck: multiple(since.iter().fold((0, 0), sum)),
            struck_by_second: since.iter().copied().map(multiple).collect(),
        }
    }
}

fn whole(at: Duration) -> usize {
    usize::try_from(at.as_secs()).unwrap_or(usize::MAX)
}
