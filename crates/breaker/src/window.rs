//! Counts the calls of a window, for the failure share and the slow-call share.

use std::time::Duration;

use tokio::time::Instant;

/// How many counters a window has.
const TENTHS: u64 = 10;

/// A ring of ten counters, each for a tenth of the window. A counter knows which tenth it is for,
/// so nothing has to be cleared as time passes.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    origin: Instant,
    tenth: Duration,
    ring: [(u64, WindowStatus); TENTHS as usize],
}

/// The calls of a breaker's window, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
            ring: Default::default(),
        }
    }

    /// Counts a call that ends now.
    pub(crate) fn count(&mut self, failed: bool, slow: bool, now: Instant) {
        let number = self.number(now);
        // the remainder is below the length of the ring
        let place = usize::try_from(number % TENTHS).unwrap_or(0);
        let Some((of, counts)) = self.ring.get_mut(place) else {
            return;
        };
        if *of < number {
            (*of, *counts) = (number, WindowStatus::default());
        }
        // a clock read long before the lock was taken belongs to an earlier window
        if *of == number {
            counts.add(WindowStatus {
                calls: 1,
                failed: failed.into(),
                slow: slow.into(),
            });
        }
    }

    /// Adds up the counters of the window.
    pub(crate) fn counts(&self, now: Instant) -> WindowStatus {
        let current = self.number(now);
        let mut sum = WindowStatus::default();
        for (number, counts) in &self.ring {
            if number + TENTHS > current {
                sum.add(*counts);
            }
        }
        sum
    }

    pub(crate) fn clear(&mut self) {
        self.ring = Default::default();
    }

    fn number(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.origin);
        u64::try_from(since.as_nanos() / self.tenth.as_nanos()).unwrap_or(u64::MAX - TENTHS)
    }
}

impl WindowStatus {
    const fn add(&mut self, more: Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.failed = self.failed.saturating_add(more.failed);
        self.slow = self.slow.saturating_add(more.slow);
    }

    /// Returns `true` if `part` is at least `percent` of the calls.
    pub(crate) fn reaches(self, part: u32, percent: u32) -> bool {
        u64::from(part) * 100 >= u64::from(self.calls) * u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_is_reached_exactly() {
        let counts = WindowStatus {
            calls: 10,
            ..WindowStatus::default()
        };
        assert!(counts.reaches(5, 50) && !counts.reaches(4, 50));
        assert!(counts.reaches(10, 100) && !counts.reaches(0, 1));
    }

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
                // a clock that was read before another call took the lock may lag behind
                let read = now - Duration::from_millis(late.min(wait)).min(now - start);
                window.count(failed, slow, read);
                all.push(((read - start).as_nanos() / tenth, failed, slow));
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
