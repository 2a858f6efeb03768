//! The durations of the calls of one tool.

use std::time::Duration;

use parking_lot::Mutex;

/// Each octave of time from a millisecond to a minute has four buckets, so that the p99 is at most
/// a quarter above the observed one.
const BUCKETS: usize = 4 * 16;

/// After this many observations all counts are halved: old ones fade.
const WINDOW: u32 = 1024;

/// A histogram of durations.
#[derive(Debug)]
pub(crate) struct Durations(Mutex<Histogram>);

#[derive(Debug)]
struct Histogram {
    counts: [u32; BUCKETS],
    observed: u32,
}

impl Default for Durations {
    fn default() -> Self {
        Self(Mutex::new(Histogram {
            counts: [0; BUCKETS],
            observed: 0,
        }))
    }
}

impl Durations {
    pub(crate) fn observe(&self, took: Duration) {
        let bucket = (0..BUCKETS - 1).find(|bucket| took <= upper_edge(*bucket));
        let mut histogram = self.0.lock();
        histogram.counts[bucket.unwrap_or(BUCKETS - 1)] += 1;
        histogram.observed += 1;
        if histogram.observed.is_multiple_of(WINDOW) {
            // a count of one stays: the slowest calls are the rarest
            histogram.counts = histogram.counts.map(|count| count.div_ceil(2));
        }
    }

    /// Returns the time that 99 of 100 observations do not exceed; `None` if there was none.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let counts = self.0.lock().counts.map(u64::from);
        let rank = (counts.iter().sum::<u64>() * 99).div_ceil(100);
        let mut below = 0;
        let bucket = counts.iter().position(|count| {
            below += count;
            rank > 0 && below >= rank
        });
        bucket.map(upper_edge)
    }
}

fn upper_edge(bucket: usize) -> Duration {
    let (octave, quarter) = (bucket / 4, bucket % 4 + 1);
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
    fn the_p99_is_at_most_a_quarter_above_the_observed() {
        assert_eq!(of([]), None);
        for millis in [1, 2, 7, 20, 333, 2_500, 40_000] {
            let p99 = of([millis]).unwrap();
            let seen = Duration::from_millis(millis);
            assert!(seen <= p99 && p99 <= seen * 5 / 4, "{millis}: {p99:?}");
        }
        let mostly_fast = |slow| (0..200).map(move |n| if n < slow { 8_000 } else { 10 });
        assert!(of(mostly_fast(2)).unwrap() < Duration::from_millis(13));
        assert!(of(mostly_fast(3)).unwrap() >= Duration::from_secs(8));
    }

    #[test]
    fn old_observations_fade() {
        let slow_then_fast = (0..20_000).map(|n| if n < 500 { 8_000 } else { 10 });
        assert!(of(slow_then_fast).unwrap() < Duration::from_millis(13));
    }
}
