//! Counting how the calls of one server end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::recent::Recent;
use super::{Latency, Totals, rate};
use crate::outcome::Outcome;

/// Counts how the calls of one server end: two atomic additions each, no lock.
#[derive(Debug)]
pub(crate) struct Tally {
    since: Instant,
    answers: AtomicU64,
    faults: AtomicU64,
    refusals: AtomicU64,
    cancelled: AtomicU64,
    /// Made with the first answer or fault, so that servers nobody calls take no memory for it.
    recent: OnceLock<Box<Recent>>,
}

impl Tally {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            answers: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            recent: OnceLock::new(),
        }
    }

    /// Counts a call that ended.
    pub(crate) fn ended(&self, outcome: Outcome, took: Duration, now: Instant) {
        let total = match outcome {
            Outcome::Answered => &self.answers,
            Outcome::Cancelled => &self.cancelled,
            Outcome::Fault => &self.faults,
            Outcome::Refused => &self.refusals,
        };
        total.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Outcome::Answered => self.recent().answer(self.age(now), took),
            Outcome::Fault => self.recent().fault(self.age(now)),
            Outcome::Cancelled | Outcome::Refused => {}
        }
    }

    /// Returns what became of all calls.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            answers: self.answers.load(Ordering::Relaxed),
            faults: self.faults.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
        }
    }

    /// Returns the share of faults among recent calls, and how long recent answers took.
    pub(crate) fn lately(&self, now: Instant) -> (Option<f64>, Latency) {
        let Some(recent) = self.recent.get() else {
            return (None, Latency::default());
        };
        let lately = recent.lately(self.age(now));
        let answers = lately.answers.total();
        let latency = Latency {
            answers,
            p50: lately.answers.percentile(50),
            p99: lately.answers.percentile(99),
        };
        (rate(lately.faults, answers), latency)
    }

    fn recent(&self) -> &Recent {
        self.recent.get_or_init(|| Box::new(Recent::new()))
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            4 => Just(Outcome::Answered),
            2 => Just(Outcome::Fault),
            1 => Just(Outcome::Refused),
            1 => Just(Outcome::Cancelled),
        ]
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let now = Instant::now();
        let tally = Tally::new(now);
        tally.ended(Outcome::Refused, Duration::ZERO, now);
        assert_eq!(tally.lately(now), (None, Latency::default()));
        assert_eq!(tally.totals().error_rate(), None);
        assert!(tally.recent.get().is_none(), "a refusal needs no memory");
    }

    #[test]
    fn a_fast_failure_does_not_look_fast() {
        let now = Instant::now();
        let tally = Tally::new(now);
        tally.ended(Outcome::Answered, Duration::from_millis(100), now);
        for _ in 0..3 {
            tally.ended(Outcome::Fault, Duration::ZERO, now);
        }
        let (error_rate, latency) = tally.lately(now);
        assert_eq!(error_rate, Some(0.75));
        assert!(latency.p50.unwrap() > Duration::from_millis(90));
    }

    #[test]
    fn threads_that_count_at_the_same_time_lose_nothing() {
        let now = Instant::now();
        let tally = Tally::new(now);
        // the part of the minute is there, so nobody clears it meanwhile
        tally.ended(Outcome::Answered, Duration::ZERO, now);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        tally.ended(Outcome::Answered, Duration::from_millis(5), now);
                        tally.ended(Outcome::Fault, Duration::ZERO, now);
                    }
                });
            }
        });
        let totals = tally.totals();
        assert_eq!((totals.answers, totals.faults), (4001, 4000));
        assert_eq!(tally.lately(now).1.answers, 4001);
    }

    proptest! {
        #[test]
        fn it_tells_what_a_list_of_all_calls_would(
            calls in prop::collection::vec((outcome(), 0u64..40_000, 8u64..1 << 24), 1..200),
        ) {
            let began = Instant::now();
            let (tally, mut now) = (Tally::new(began), began);
            let mut all = Vec::new();
            for (outcome, pause, micros) in calls {
                now += Duration::from_millis(pause);
                tally.ended(outcome, Duration::from_micros(micros), now);
                all.push((outcome, now, micros));
            }
            let ever = |wanted| all.iter().filter(|(is, ..)| *is == wanted).count() as u64;
            let totals = tally.totals();
            prop_assert_eq!(totals.answers, ever(Outcome::Answered));
            prop_assert_eq!(totals.faults, ever(Outcome::Fault));
            prop_assert_eq!(totals.refusals, ever(Outcome::Refused));
            prop_assert_eq!(totals.cancelled, ever(Outcome::Cancelled));
            prop_assert_eq!(totals.ended(), all.len() as u64);

            let minute = |at: Instant| (at - began).as_secs() / 60;
            let recent: Vec<_> =
                all.iter().filter(|(_, at, _)| minute(now) - minute(*at) < 2).collect();
            let faults = recent.iter().filter(|(is, ..)| *is == Outcome::Fault).count();
            let mut times: Vec<u64> = recent
                .iter()
                .filter(|(is, ..)| *is == Outcome::Answered)
                .map(|(.., micros)| *micros)
                .collect();
            times.sort_unstable();
            let (error_rate, latency) = tally.lately(now);
            let ended = faults + times.len();
            prop_assert_eq!(error_rate, (ended > 0).then(|| faults as f64 / ended as f64));
            prop_assert_eq!(latency.answers, times.len() as u64);
            for (percent, told) in [(50, latency.p50), (99, latency.p99)] {
                let Some(told) = told else {
                    prop_assert!(times.is_empty());
                    continue;
                };
                let rank = (times.len() * percent).div_ceil(100).max(1);
                let exact = times[rank - 1] as f64;
                let told = told.as_secs_f64() * 1e6;
                prop_assert!((told - exact).abs() <= exact / 16.0, "{told} for {exact}");
            }
        }
    }
}
