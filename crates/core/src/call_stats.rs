//! The live counts of one tool: atomics that calls add to without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde::Serialize;

/// Counts the calls of one tool. It takes memory from the first call on.
#[derive(Debug, Default)]
pub struct CallStats {
    calls: OnceLock<Box<Counters>>,
    /// The attempts of its calls, and the version of the tool that had them.
    attempts: ArcSwapOption<(u64, Arc<Self>)>,
}

/// Durations are counted in buckets: four for each power of two of microseconds, up to over an
/// hour.
const BUCKETS: usize = 128;

#[derive(Debug)]
struct Counters {
    cached: AtomicU64,
    ran: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    durations: [AtomicU64; BUCKETS],
}

impl CallStats {
    /// How many calls say how long one usually takes.
    pub const ENOUGH: u64 = 20;

    /// Counts a call that was answered without running: from the cache, or by the run of another.
    pub fn count_cached(&self) {
        self.counters().cached.fetch_add(1, Relaxed);
    }

    /// Counts a call that ran.
    pub fn count(&self, took: Duration, failed: bool) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let counters = self.counters();
        counters.ran.fetch_add(1, Relaxed);
        counters.micros.fetch_add(micros, Relaxed);
        counters.failed.fetch_add(failed.into(), Relaxed);
        if let Some(bucket) = counters.durations.get(bucket_of(micros)) {
            bucket.fetch_add(1, Relaxed);
        }
    }

    /// Counts an attempt of a call of this version of the tool. Those of other versions are
    /// forgotten.
    pub fn count_attempt(&self, version: u64, took: Duration, failed: bool) {
        let counts = self.attempts(version).unwrap_or_else(|| {
            let counts = Arc::<Self>::default();
            let new = (version, counts.clone());
            self.attempts.store(Some(Arc::new(new)));
            counts
        });
        counts.count(took, failed);
    }

    /// Returns the counts of the attempts of this version of the tool, if there are some.
    #[must_use]
    pub fn attempts(&self, version: u64) -> Option<Arc<Self>> {
        let known = self.attempts.load();
        let (_, counts) = &**known.as_ref().filter(|known| known.0 == version)?;
        Some(counts.clone())
    }

    /// Returns the counts now.
    #[must_use]
    pub fn totals(&self) -> CallTotals {
        let Some(counters) = self.calls.get() else {
            return CallTotals::default();
        };
        let [cached, ran, failed, micros] = [
            &counters.cached,
            &counters.ran,
            &counters.failed,
            &counters.micros,
        ]
        .map(|count| count.load(Relaxed));
        let calls = cached + ran;
        CallTotals {
            calls,
            failed,
            success_rate: rate(calls.saturating_sub(failed), calls),
            cached_rate: rate(cached, calls),
            mean_ms: (ran > 0).then(|| micros as f64 / ran as f64 / 1e3),
        }
    }

    /// Returns the mean duration; `None` before enough calls ran.
    #[must_use]
    pub fn usual(&self) -> Option<Duration> {
        let counters = self.calls.get()?;
        let ran = counters.ran.load(Relaxed);
        let micros = || counters.micros.load(Relaxed) / ran;
        (ran >= Self::ENOUGH).then(|| Duration::from_micros(micros()))
    }

    /// Returns a duration in milliseconds that 99 of 100 calls that ran did not exceed; at most a
    /// quarter above the shortest such duration. `None` if none ran.
    #[must_use]
    pub fn p99_ms(&self) -> Option<f64> {
        let durations = self.calls.get()?.durations.each_ref();
        let durations = durations.map(|count| count.load(Relaxed));
        let ran: u64 = durations.iter().sum();
        let rank = (ran * 99).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = durations.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(upper(bucket) as f64 / 1e3)
    }

    fn counters(&self) -> &Counters {
        self.calls.get_or_init(|| {
            Box::new(Counters {
                cached: AtomicU64::new(0),
                ran: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                micros: AtomicU64::new(0),
                durations: [const { AtomicU64::new(0) }; BUCKETS],
            })
        })
    }
}

/// The calls of one tool so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct CallTotals {
    /// All calls that were answered.
    pub calls: u64,
    /// Those that failed; a result with `isError` is a failure.
    pub failed: u64,
    /// The share of calls that did not fail, 0 to 1; `None` without a call.
    pub success_rate: Option<f64>,
    /// The share of calls that were answered without running, 0 to 1; `None` without a call.
    pub cached_rate: Option<f64>,
    /// How long a call that ran took on average, in milliseconds.
    pub mean_ms: Option<f64>,
}

fn rate(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Returns the bucket of a duration: its power of two, and the two bits that follow.
fn bucket_of(micros: u64) -> usize {
    let micros = micros.max(4);
    let power = micros.ilog2();
    let quarter = (micros >> (power - 2)) & 3;
    ((power as usize - 2) * 4 + quarter as usize).min(BUCKETS - 1)
}

/// Returns the longest duration of a bucket.
const fn upper(bucket: usize) -> u64 {
    ((5 + bucket as u64 % 4) << (bucket / 4)) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_ends_at_most_a_quarter_above_its_durations(micros in 1..1_u64 << 32) {
            let upper = upper(bucket_of(micros));
            prop_assert!(micros <= upper && upper <= (micros + micros / 4).max(4), "{}", upper);
        }
    }

    #[test]
    fn calls_that_ran_and_calls_that_did_not_are_counted_apart() {
        let stats = CallStats::default();
        assert_eq!(stats.totals(), CallTotals::default());
        for millis in 1..=98 {
            stats.count(Duration::from_millis(millis), false);
        }
        stats.count(Duration::from_secs(1), true);
        stats.count(Duration::from_secs(u64::MAX), true);
        for _ in 0..100 {
            stats.count_cached();
        }
        let totals = stats.totals();
        assert_eq!((totals.calls, totals.failed), (200, 2));
        assert_eq!(
            (totals.success_rate, totals.cached_rate),
            (Some(0.99), Some(0.5))
        );
        assert!(
            (1000.0..1250.0).contains(&stats.p99_ms().unwrap()),
            "{totals:?}"
        );
    }
}
