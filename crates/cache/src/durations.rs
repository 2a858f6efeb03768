//! How long the calls of one tool take.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Each octave of time from a millisecond to a minute has four places, so what is told is at most a
/// quarter above what was seen.
const PLACES: usize = 4 * 16;

/// At so many observations all counts are halved: what a tool did long ago fades.
const WINDOW: u32 = 1024;

/// A histogram that counts without locks.
#[derive(Debug)]
pub(crate) struct Durations {
    counts: [AtomicU32; PLACES],
    seen: AtomicU32,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU32::new(0)),
            seen: AtomicU32::new(0),
        }
    }
}

impl Durations {
    /// Takes one observation in.
    pub(crate) fn observe(&self, took: Duration) {
        let Some(count) = self.counts.get(place_of(took)) else {
            return;
        };
        count.fetch_add(1, Ordering::Relaxed);
        let seen = self.seen.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if seen.is_multiple_of(WINDOW) {
            for count in &self.counts {
                // one that is seen stays: the slowest calls are the rarest
                let half = count.load(Ordering::Relaxed).div_ceil(2);
                count.store(half, Ordering::Relaxed);
            }
        }
    }

    /// Returns the time that 99 of 100 observations do not exceed; `None` if there was none.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let counts = || {
            self.counts
                .iter()
                .map(|c| u64::from(c.load(Ordering::Relaxed)))
        };
        let rank = (counts().sum::<u64>() * 99).div_ceil(100);
        let mut below = 0;
        let place = counts().position(|count| {
            below += count;
            rank > 0 && below >= rank
        });
        place.map(end_of)
    }
}

/// The place of a time: that of the octave it is in, and of the quarter there.
fn place_of(took: Duration) -> usize {
    (0..PLACES - 1)
        .position(|place| took <= end_of(place))
        .unwrap_or(PLACES - 1)
}

fn end_of(place: usize) -> Duration {
    let (octave, quarter) = (place / 4, place % 4 + 1);
    let quarters = u64::try_from(4 + quarter).unwrap_or(8) << octave;
    Duration::from_micros(250 * quarters)
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Option<Duration> {
        let durations = Durations::default();
        for millis in times {
            durations.observe(Duration::from_millis(millis));
        }
        durations.p99()
    }

    #[test]
    fn the_p99_is_at_most_a_quarter_above_what_was_seen() {
        assert_eq!(of([]), None);
        for millis in [1, 2, 7, 20, 333, 2_500, 40_000] {
            let told = of([millis]).unwrap();
            let seen = Duration::from_millis(millis);
            assert!(seen <= told && told <= seen * 5 / 4, "{millis}: {told:?}");
        }
        let mostly_fast = |slow| (0..200).map(move |n| if n < slow { 8_000 } else { 10 });
        assert!(of(mostly_fast(2)).unwrap() < Duration::from_millis(13));
        assert!(of(mostly_fast(3)).unwrap() >= Duration::from_secs(8));
    }

    #[test]
    fn what_was_long_ago_fades() {
        let slow_then_fast = (0..20_000).map(|n| if n < 500 { 8_000 } else { 10 });
        assert!(of(slow_then_fast).unwrap() < Duration::from_millis(13));
    }
}
