//! How long calls to a server take, and how they fail: an average that believes bad news at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long calls to a server take, and how they fail.
///
/// A peak-sensitive moving average, as in Finagle's balancer and linkerd's: a call that took longer
/// than the average *is* the new average, shorter ones pull it down slowly, by how much time has
/// passed. So a server that stalls is known to be slow from its first late answer on.
///
/// Two things are done in another way:
///
/// - *What is old is not fast.* There, an average that nobody feeds falls to nothing, and a server that
///   was left alone because it is slow soon looks like the fastest of all. Here it keeps its value and
///   loses [trust](Estimate::trust): who compares servers takes the common mean instead, by as much as
///   trust is lacking. Where calls take longer than the memory is long, it lasts for ten of them.
/// - *A failure is not fast.* The time it took counts only if it was long. Instead each failure in a row
///   triples what the server seems to cost, whatever its latency, so that one that refuses in
///   microseconds attracts nobody.
///
/// Lock-free, 24 bytes. `now` is nanoseconds since any moment that stays the same; time that goes
/// backwards stands still.
///
/// Finagle: <https://twitter.github.io/finagle/guide/Clients.html#power-of-two-choices-p2c-least-loaded>.
#[derive(Debug, Default)]
pub(crate) struct PeakEwma {
    /// When the last call ended.
    seen: AtomicU64,
    /// Nanoseconds, as the bits of a float; 0 is unknown.
    average: AtomicU64,
    /// Failures in a row, as the bits of a float: with time, and with success, they become fewer.
    strikes: AtomicU64,
}

/// What is known of a server at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// Nanoseconds a call takes; meaningless without trust.
    pub(crate) nanos: f64,
    /// How far to believe it, from 0 (nothing is known, or it is too old) to 1.
    pub(crate) trust: f64,
    /// How many times more it should seem to cost for its failures: 1 for none.
    pub(crate) penalty: f64,
}

impl Estimate {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self {
        nanos: 0.0,
        trust: 0.0,
        penalty: 1.0,
    };

    /// Returns the nanoseconds a call is expected to take among servers with this mean.
    pub(crate) fn towards(&self, mean: f64) -> f64 {
        mean + (self.nanos - mean) * self.trust
    }
}

/// How long memory lasts: the time after which what was measured counts for 37 % (1/e).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Memory {
    nanos: f64,
}

impl Memory {
    /// Ten seconds, as linkerd's.
    pub(crate) const DEFAULT: Self = Self::new(Duration::from_secs(10));

    /// At least a microsecond.
    pub(crate) const fn new(lasts: Duration) -> Self {
        // exact up to a hundred days, and nobody can tell beyond
        let nanos = lasts.as_nanos() as f64;
        Self {
            nanos: if nanos < 1000.0 { 1000.0 } else { nanos },
        }
    }

    /// Returns what is left after some time, from 1 down to 0.
    fn left(self, nanos: f64) -> f64 {
        let passed = nanos / self.nanos;
        if passed < 1e-4 {
            // the usual case on a busy server; off by less than a hundred-millionth
            return 1.0 - passed;
        }
        exp(-passed)
    }

    /// Returns the memory for something that takes so long.
    fn of_calls(self, nanos: f64) -> Self {
        Self {
            nanos: self.nanos.max(nanos * CALLS),
        }
    }
}

impl PeakEwma {
    /// Takes in a call that was answered.
    pub(crate) fn succeeded(&self, now: u64, took: Duration, memory: Memory) {
        let passed = self.passed(now);
        self.strike(passed, memory, |strikes| strikes * FORGIVEN);
        let took = nanos(took);
        update(&self.average, |average| {
            if took >= average {
                took
            } else {
                took + (average - took) * memory.left(passed)
            }
        });
    }

    /// Takes in a call that failed by the server's fault.
    pub(crate) fn failed(&self, now: u64, took: Duration, memory: Memory) {
        let passed = self.passed(now);
        self.strike(passed, memory, |strikes| (strikes + 1.0).min(MOST_STRIKES));
        let took = nanos(took);
        // what is not known to be fast must not look so: a quick failure tells no latency
        update(&self.average, |average| {
            if average > 0.0 {
                took.max(average)
            } else {
                average
            }
        });
    }

    /// Takes in a call that somebody gave up: it would have taken longer. A server that hangs is known
    /// by these alone.
    ///
    /// What is unknown stays so, if it is short: a second attempt beside this one may just have won.
    pub(crate) fn outlasted(&self, now: u64, took: Duration) {
        let took = nanos(took);
        let known = float(self.average.load(Ordering::Relaxed));
        if took > known.max(LEAST_TOLD) {
            self.seen.fetch_max(now, Ordering::Relaxed);
            update(&self.average, |average| average.max(took));
        }
    }

    /// Forgets all of it.
    pub(crate) fn forget(&self) {
        self.average.store(0, Ordering::Relaxed);
        self.strikes.store(0, Ordering::Relaxed);
    }

    /// Returns what is known.
    pub(crate) fn read(&self, now: u64, memory: Memory) -> Estimate {
        let average = float(self.average.load(Ordering::Relaxed));
        let strikes = float(self.strikes.load(Ordering::Relaxed));
        if average == 0.0 && strikes == 0.0 {
            return Estimate::UNKNOWN;
        }
        let age = now.saturating_sub(self.seen.load(Ordering::Relaxed)) as f64;
        let trust = match average > 0.0 {
            true => memory.of_calls(average).left(age),
            false => 0.0,
        };
        Estimate {
            nanos: average,
            trust: if trust < LEAST_TRUST { 0.0 } else { trust },
            penalty: match strikes > 0.0 {
                true => penalty(strikes * memory.left(age)),
                false => 1.0,
            },
        }
    }

    /// Returns the nanoseconds since the last call ended, and lets this one be the last. Of calls that
    /// end together each gets a part of the time, and none gets a part twice.
    fn passed(&self, now: u64) -> f64 {
        let before = self.seen.fetch_max(now, Ordering::Relaxed);
        now.saturating_sub(before) as f64
    }

    fn strike(&self, passed: f64, memory: Memory, change: impl Fn(f64) -> f64) {
        update(&self.strikes, |strikes| {
            // mostly there are none, and nothing of nothing is left without reckoning
            let strikes = match strikes > 0.0 {
                true => change(strikes * memory.left(passed)),
                false => change(0.0),
            };
            if strikes < LEAST_STRIKES {
                0.0
            } else {
                strikes
            }
        });
    }
}

/// Returns how many times more a server should seem to cost after failures.
///
/// A call by itself, as is [`exp`]: inlined, the compiler reckons the power first and asks afterwards
/// whether it is needed, for every server of every choice.
#[cold]
#[inline(never)]
fn penalty(strikes: f64) -> f64 {
    if strikes < LEAST_STRIKES {
        1.0
    } else {
        TIMES.powf(strikes)
    }
}

#[inline(never)]
fn exp(x: f64) -> f64 {
    x.exp()
}

/// Changes a float; leaves it alone where nothing changes.
fn update(cell: &AtomicU64, change: impl Fn(f64) -> f64) {
    let changed = |bits| {
        let next = change(float(bits)).to_bits();
        (next != bits).then_some(next)
    };
    // fails only where nothing changes
    let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
}

fn float(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// At least one, as 0 is unknown.
fn nanos(took: Duration) -> f64 {
    // 584 years fit, and a float of 64 bits is made in one step, of 128 in many
    (u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) as f64).max(1.0)
}

/// Memory lasts for so many calls, where that is longer.
const CALLS: f64 = 10.0;

/// Less trust than this is none: the server is as good as unknown, and worth a call.
const LEAST_TRUST: f64 = 0.01;

/// Each failure in a row makes a server look so many times dearer.
const TIMES: f64 = 3.0;

/// What a success leaves of the failures before it.
const FORGIVEN: f64 = 0.5;

/// More failures in a row count as so many: 3^16 is 43 million.
const MOST_STRIKES: f64 = 16.0;

/// A call that was given up before so many nanoseconds tells nothing of a server nobody knows.
const LEAST_TOLD: f64 = 1e9;

/// Less than this is no failure.
const LEAST_STRIKES: f64 = 0.05;

#[cfg(test)]
mod tests;
