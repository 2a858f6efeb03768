//! How long calls to a server take, and how they fail: an average that believes bad news at once.

use std::time::Duration;

use tokio::time::Instant;

use crate::outcome::Outcome;

/// A peak-sensitive moving average, as in Finagle's balancer and linkerd's: a call that took longer
/// than the average *is* the new average, shorter ones pull it down slowly. Two things differ:
///
/// - *What is old is not fast.* An average that no call feeds keeps its value and loses
///   [trust](Estimate::trust), rather than falling to nothing.
/// - *A failure is not fast.* Each consecutive failure triples what the server seems to cost, so
///   one that refuses in microseconds attracts no calls.
///
/// <https://twitter.github.io/finagle/guide/Clients.html#power-of-two-choices-p2c-least-loaded>
#[derive(Debug, Default)]
pub(crate) struct PeakEwma {
    /// When the last call ended.
    seen: Option<Instant>,
    /// In nanoseconds; 0 is unknown.
    average: f64,
    /// Consecutive failures. Time and successes reduce them.
    strikes: f64,
}

/// What is known of a server at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// Nanoseconds a call takes; meaningless without trust.
    pub(crate) nanos: f64,
    /// How far to believe it, from 0 (unknown, or too old) to 1.
    pub(crate) trust: f64,
    /// How many times more it seems to cost for its failures: 1 for none.
    pub(crate) penalty: f64,
}

/// The time after which a measurement counts for 37 % (1/e): linkerd's.
const MEMORY: Duration = Duration::from_secs(10);
/// Memory lasts for this many calls, where that is longer.
const CALLS: f64 = 10.0;
/// Less trust than this counts as zero: the server is as good as unknown, and worth a call.
const MIN_TRUST: f64 = 0.01;
/// Each consecutive failure makes a server look this many times more costly.
const PENALTY: f64 = 3.0;
/// What a success leaves of the failures before it.
const FORGIVEN: f64 = 0.5;
/// 3^16 is 43 million.
const MAX_STRIKES: f64 = 16.0;
/// A call given up before this says nothing of an unknown server.
const MIN_ABANDONED: f64 = 1e9;

impl PeakEwma {
    /// Learns from a call that ended.
    pub(crate) fn learn(&mut self, outcome: Outcome, took: Duration, now: Instant) {
        let nanos = (took.as_nanos() as f64).max(1.0);
        match outcome {
            Outcome::Answered => {
                let left = self.decay(now);
                self.strikes *= FORGIVEN;
                let is_peak = nanos >= self.average;
                let slower = nanos + (self.average - nanos) * left;
                self.average = if is_peak { nanos } else { slower };
            }
            // one that refuses is not fast either: it would get every call
            Outcome::Fault | Outcome::Refused => {
                self.decay(now);
                self.strikes = (self.strikes + 1.0).min(MAX_STRIKES);
                if self.average > 0.0 {
                    self.average = self.average.max(nanos);
                }
            }
            // it would have taken longer: a server that hangs is known by these alone
            Outcome::Cancelled if nanos > self.average.max(MIN_ABANDONED) => {
                self.seen = Some(now);
                self.average = nanos;
            }
            Outcome::Cancelled | Outcome::Asked => {}
        }
    }

    /// Returns what is known.
    pub(crate) fn estimate(&self, now: Instant) -> Estimate {
        let age = self
            .seen
            .map_or(Duration::MAX, |seen| now.saturating_duration_since(seen));
        let memory = MEMORY.as_nanos() as f64;
        let trust = match self.average > 0.0 {
            true => left(age, memory.max(self.average * CALLS)),
            false => 0.0,
        };
        Estimate {
            nanos: self.average,
            trust: if trust < MIN_TRUST { 0.0 } else { trust },
            penalty: PENALTY.powf(self.strikes * left(age, memory)),
        }
    }

    /// Reduces the strikes by the time since the last call; returns what that time leaves.
    fn decay(&mut self, now: Instant) -> f64 {
        let before = self.seen.replace(now).unwrap_or(now);
        let age = now.saturating_duration_since(before);
        let left = left(age, MEMORY.as_nanos() as f64);
        self.strikes *= left;
        left
    }
}

impl Estimate {
    /// Returns the nanoseconds a call is expected to take among servers with this mean.
    pub(crate) fn towards(&self, mean: f64) -> f64 {
        mean + (self.nanos - mean) * self.trust
    }
}

/// Returns what is left of a memory after some time, from 1 down to 0.
fn left(age: Duration, memory: f64) -> f64 {
    (-(age.as_nanos() as f64) / memory).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_peak_counts_at_once_and_fades_slowly() {
        let (mut ewma, start) = (PeakEwma::default(), Instant::now());
        assert_eq!(ewma.estimate(start).trust, 0.0);
        ewma.learn(Outcome::Answered, 10 * MS, start);
        assert_eq!(ewma.estimate(start).nanos, 10e6);
        ewma.learn(Outcome::Answered, 500 * MS, start);
        assert_eq!(ewma.estimate(start).nanos, 500e6);
        ewma.learn(Outcome::Answered, 10 * MS, start + MEMORY);
        let faded = ewma.estimate(start + MEMORY).nanos;
        assert!((150e6..250e6).contains(&faded), "{faded}");
    }

    #[test]
    fn what_is_old_is_unknown_rather_than_fast() {
        let (mut ewma, start) = (PeakEwma::default(), Instant::now());
        ewma.learn(Outcome::Answered, 500 * MS, start);
        let old = ewma.estimate(start + 100 * MEMORY);
        assert_eq!((old.nanos, old.trust), (500e6, 0.0));
        assert_eq!(old.towards(7.0), 7.0);
        // where calls take longer than the memory, it lasts for ten of them
        ewma.learn(Outcome::Answered, 6 * MEMORY, start);
        assert!(ewma.estimate(start + 6 * MEMORY).trust > 0.9);
    }

    #[test]
    fn failures_make_it_costly_until_it_answers() {
        let (mut ewma, start) = (PeakEwma::default(), Instant::now());
        ewma.learn(Outcome::Answered, 10 * MS, start);
        for _ in 0..2 {
            ewma.learn(Outcome::Fault, MS / 1000, start);
        }
        let estimate = ewma.estimate(start);
        assert_eq!((estimate.nanos, estimate.penalty), (10e6, 9.0));
        ewma.learn(Outcome::Answered, 10 * MS, start);
        assert!(ewma.estimate(start).penalty < 4.0);
        assert!(ewma.estimate(start + 10 * MEMORY).penalty < 1.01);
    }

    #[test]
    fn a_call_that_was_given_up_took_at_least_as_long() {
        let (mut ewma, start) = (PeakEwma::default(), Instant::now());
        ewma.learn(Outcome::Cancelled, 500 * MS, start);
        assert_eq!(ewma.estimate(start).trust, 0.0, "too short to tell");
        ewma.learn(Outcome::Asked, 60_000 * MS, start);
        assert_eq!(ewma.estimate(start).trust, 0.0, "a person's time");
        ewma.learn(Outcome::Cancelled, 3000 * MS, start);
        ewma.learn(Outcome::Cancelled, 1000 * MS, start);
        assert_eq!(ewma.estimate(start).nanos, 3e9);
    }
}
