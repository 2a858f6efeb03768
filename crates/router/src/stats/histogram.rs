//! How long calls took: counts in buckets whose widths grow with the times.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Each power of two is split into so many buckets, so a time is known to an eighth of itself.
const SPLIT: u64 = 8;
const SPLIT_BITS: u32 = SPLIT.trailing_zeros();
/// Times from 2^31 µs (36 minutes) on are told as the last bucket's.
const TOP_BIT: u32 = 30;
const BUCKETS: usize = ((TOP_BIT - SPLIT_BITS + 2) as usize) << SPLIT_BITS;

/// Counts of times, from one microsecond to 36 minutes.
///
/// Log-linear buckets, as in `HdrHistogram` (Gil Tene) and Circllhist (Hartmann and Schlossnagle,
/// 2020): which bucket a time belongs to follows from its leading bits, so counting it is one atomic
/// addition. A percentile is told as the middle of its bucket, at most 6.25 % off.
#[derive(Debug)]
pub(super) struct Histogram {
    counts: [AtomicU32; BUCKETS],
}

impl Histogram {
    pub(super) const fn new() -> Self {
        Self {
            counts: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    /// Counts a time.
    pub(super) fn record(&self, took: Duration) {
        if let Some(count) = self.counts.get(bucket(took)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Adds what was counted here to a sum of several.
    pub(super) fn add_to(&self, sum: &mut Counted) {
        for (own, all) in self.counts.iter().zip(&mut sum.counts) {
            *all += u64::from(own.load(Ordering::Relaxed));
        }
    }
}

/// What several histograms counted at one moment.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    counts: [u64; BUCKETS],
}

impl Counted {
    pub(super) const fn new() -> Self {
        Self {
            counts: [0; BUCKETS],
        }
    }

    /// Returns how many times were counted.
    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the time that so many of 100 do not exceed; `None` if none was counted.
    pub(super) fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.total() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= rank
        };
        self.counts.iter().position(reached).map(middle)
    }
}

/// Returns the bucket of a time.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if micros < SPLIT {
        return micros as usize;
    }
    let top = micros.ilog2();
    if top > TOP_BIT {
        return BUCKETS - 1;
    }
    let split = (micros >> (top - SPLIT_BITS)) & (SPLIT - 1);
    (u64::from(top - SPLIT_BITS + 1) * SPLIT + split) as usize
}

/// Returns the middle of a bucket.
fn middle(bucket: usize) -> Duration {
    let (octave, split) = (bucket as u64 / SPLIT, bucket as u64 % SPLIT);
    let (low, width) = match octave {
        0 => (split, 1),
        _ => ((SPLIT + split) << (octave - 1), 1 << (octave - 1)),
    };
    Duration::from_nanos(low * 1000 + width * 500)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(times: &[u64]) -> Counted {
        let histogram = Histogram::new();
        for micros in times {
            histogram.record(Duration::from_micros(*micros));
        }
        let mut sum = Counted::new();
        histogram.add_to(&mut sum);
        sum
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for micros in 0..100_000u64 {
            let bucket = bucket(Duration::from_micros(micros));
            assert!(bucket == last || bucket == last + 1, "{micros}");
            last = bucket;
        }
        assert_eq!(bucket(Duration::from_micros((1 << 31) - 1)), BUCKETS - 1);
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
        assert_eq!(bucket(Duration::ZERO), 0);
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(counted(&[]).percentile(99), None);
    }

    #[test]
    fn a_cleared_histogram_counts_anew() {
        let histogram = Histogram::new();
        histogram.record(Duration::from_secs(1));
        histogram.clear();
        let mut sum = Counted::new();
        histogram.add_to(&mut sum);
        assert_eq!(sum.total(), 0);
    }

    proptest! {
        #[test]
        fn a_percentile_is_off_by_a_sixteenth_at_most(
            mut times in prop::collection::vec(8u64..1 << 31, 1..300),
            percent in 1u64..=100,
        ) {
            let told = counted(&times).percentile(percent).unwrap().as_secs_f64() * 1e6;
            times.sort_unstable();
            let rank = (times.len() as u64 * percent).div_ceil(100).max(1);
            let exact = times[rank as usize - 1] as f64;
            prop_assert!((told - exact).abs() <= exact / 16.0, "{told} for {exact}");
        }
    }
}
