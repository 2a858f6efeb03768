//! Counts the calls of a window, for the failure share and the slow-call share.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How many counters a window has.
const TENTHS: u64 = 10;

/// Counters, each for a tenth of the window, the oldest first.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    origin: Instant,
    tenth: Duration,
    /// The number of each tenth, and its calls.
    tenths: VecDeque<(u64, WindowStatus)>,
}

/// The calls of a breaker's window, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct WindowStatus {
    /// How many there were.
    pub calls: u32,
    /// How many of them failed.
    pub failed: u32,
    /// How many of them were slow, failed or not.
    pub slow: u32,
}

impl Window {
    pub(crate) fn new(length: Duration, now: Instant) -> Self {
        Self {
            origin: now,
            // never zero: it is a divisor
            tenth: (length / 10).max(Duration::from_nanos(1)),
            tenths: VecDeque::new(),
        }
    }

    /// Counts a call that ends now.
    pub(crate) fn count(&mut self, failed: bool, slow: bool, now: Instant) {
        let number = self.number(now);
        self.tenths.retain(|(of, _)| of + TENTHS > number);
        // a clock that was read before another call took the lock may lag behind
        if self.tenths.back().is_none_or(|(of, _)| *of < number) {
            self.tenths.push_back((number, WindowStatus::default()));
        }
        if let Some((_, counts)) = self.tenths.back_mut() {
            counts.calls = counts.calls.saturating_add(1);
            counts.failed = counts.failed.saturating_add(failed.into());
            counts.slow = counts.slow.saturating_add(slow.into());
        }
    }

    /// Adds up the counters of the window.
    pub(crate) fn counts(&self, now: Instant) -> WindowStatus {
        let current = self.number(now);
        let counted = self.tenths.iter().filter(|(of, _)| of + TENTHS > current);
        counted.fold(WindowStatus::default(), |sum, (_, more)| WindowStatus {
            calls: sum.calls.saturating_add(more.calls),
            failed: sum.failed.saturating_add(more.failed),
            slow: sum.slow.saturating_add(more.slow),
        })
    }

    pub(crate) fn clear(&mut self) {
        self.tenths.clear();
    }

    fn number(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.origin);
        u64::try_from(since.as_nanos() / self.tenth.as_nanos()).unwrap_or(u64::MAX - TENTHS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a model that keeps every call.
        #[test]
        fn it_counts_like_a_list_of_all_calls(
            length in 10_u64..100_000,
            steps in prop::collection::vec((0_u64..30_000, any::<bool>(), any::<bool>()), 0..200),
            late in 0_u64..20_000,
        ) {
            let start = Instant::now();
            let length = Duration::from_millis(length);
            let tenth = (length / 10).as_nanos();
            let mut window = Window::new(length, start);
            let mut all: Vec<(u128, bool, bool)> = Vec::new();
            let mut now = start;
            for (wait, failed, slow) in steps {
                // long pauses, and many calls between them
                if wait % 3 == 0 {
                    now += Duration::from_millis(wait);
                }
                let read = now - Duration::from_millis(late.min(wait)).min(now - start);
                window.count(failed, slow, read);
                // a clock that lags behind counts in the latest tenth
                let latest = all.last().map_or(0, |(number, ..)| *number);
                let number = latest.max((read - start).as_nanos() / tenth);
                all.push((number, failed, slow));
                let current = (now - start).as_nanos() / tenth;
                let inside = || all.iter().filter(|(number, ..)| number + 10 > current);
                let expected = WindowStatus {
                    calls: u32::try_from(inside().count()).unwrap(),
                    failed: u32::try_from(inside().filter(|one| one.1).count()).unwrap(),
                    slow: u32::try_from(inside().filter(|one| one.2).count()).unwrap(),
                };
                prop_assert_eq!(window.counts(now), expected);
            }
        }
    }
}
