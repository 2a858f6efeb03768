//! The pauses before retries: a pure function of the settings, the first step and the random draws.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// The schedule of the pauses: exponential with factor 2, jittered, never above a ceiling.
///
/// The step to draw from stops growing at the ceiling, so that the pauses of a long outage differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Backoff {
    /// The jitter. Default: [`Jitter::Full`].
    pub jitter: Jitter,
    /// The longest pause, unless a server asks for a longer one. Default: 10 s.
    #[serde(rename = "max_pause", with = "callward_core::human::duration")]
    pub ceiling: Duration,
}

impl Backoff {
    /// Makes a schedule.
    #[must_use]
    pub const fn new(jitter: Jitter, ceiling: Duration) -> Self {
        Self { jitter, ceiling }
    }

    /// Returns the endless pauses of one call.
    pub(crate) fn pauses(self, first: Duration, rng: Rng) -> Pauses {
        let first = first.min(self.ceiling);
        Pauses {
            backoff: self,
            first,
            previous: first,
            retry: 0,
            rng,
        }
    }

    /// Returns the longest possible pause before this retry, counted from 0.
    pub(crate) fn longest(self, first: Duration, retry: u32) -> Duration {
        let factor = match self.jitter {
            Jitter::Decorrelated => 3_u32.saturating_pow(retry.saturating_add(1)),
            Jitter::Equal | Jitter::Full | Jitter::None => 2_u32.saturating_pow(retry),
        };
        first.saturating_mul(factor).min(self.ceiling)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Jitter::Full, Duration::from_secs(10))
    }
}

/// The random part of a pause, so that calls which failed together do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Jitter {
    /// Between the first step and three times the pause before.
    Decorrelated,
    /// Half of the step is fixed, the other half random.
    Equal,
    /// The whole step is random: spreads best.
    #[default]
    Full,
    /// The step itself. Calls that failed together retry together.
    None,
}

/// The pauses of one call. See [`Backoff::pauses`].
#[derive(Debug, Clone)]
pub(crate) struct Pauses {
    backoff: Backoff,
    first: Duration,
    previous: Duration,
    retry: u32,
    rng: Rng,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let Self { first, rng, .. } = self;
        let Backoff { jitter, ceiling } = self.backoff;
        let step = first.saturating_mul(2_u32.saturating_pow(self.retry));
        let step = step.min(ceiling);
        let drawn = match jitter {
            Jitter::Decorrelated => {
                let widest = self.previous.saturating_mul(3).min(ceiling);
                between(*first, widest.max(*first), rng)
            }
            Jitter::Equal => between(step / 2, step, rng),
            Jitter::Full => between(Duration::ZERO, step, rng),
            Jitter::None => step,
        };
        self.retry = self.retry.saturating_add(1);
        self.previous = drawn.min(ceiling);
        Some(self.previous)
    }
}

/// Draws between two durations, both included, `low` not above `high`.
fn between(low: Duration, high: Duration, rng: &mut Rng) -> Duration {
    let range = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX);
    low.saturating_add(Duration::from_nanos(rng.u64(0..=range)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JITTERS: [Jitter; 4] = [
        Jitter::None,
        Jitter::Decorrelated,
        Jitter::Equal,
        Jitter::Full,
    ];

    #[test]
    fn full_jitter_uses_the_step_and_equal_jitter_its_upper_half() {
        let first = Duration::from_millis(100);
        let fourth = |jitter| {
            let backoff = Backoff::new(jitter, Duration::from_secs(10));
            let draws = (0..200).map(fastrand::Rng::with_seed);
            draws.map(move |draws| backoff.pauses(first, draws).nth(3).unwrap())
        };
        let (quarter, whole) = (Duration::from_millis(200), Duration::from_millis(800));
        for jitter in [Jitter::Full, Jitter::Equal] {
            assert!(fourth(jitter).any(|pause| pause > whole - quarter));
        }
        assert!(fourth(Jitter::Full).any(|pause| pause < quarter));
    }

    fn durations() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (1_u64..100_000).prop_map(Duration::from_millis),
            (any::<u64>(), 0_u32..1_000_000_000)
                .prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        ]
    }

    proptest! {
        /// The bounds of each jitter, from its definition.
        #[test]
        fn each_jitter_keeps_its_bounds_and_no_pause_is_above_the_ceiling(
            jitter in prop::sample::select(&JITTERS[..]),
            ceiling in durations(),
            first in durations(),
            seed in any::<u64>(),
        ) {
            let backoff = Backoff::new(jitter, ceiling);
            let mut before = first;
            for (retry, pause) in (0..).zip(backoff.pauses(first, fastrand::Rng::with_seed(seed)).take(40)) {
                prop_assert!(pause <= backoff.longest(first, retry), "{retry}: {pause:?}");
                let step = first.saturating_mul(2_u32.saturating_pow(retry)).min(ceiling);
                let (least, most) = match jitter {
                    Jitter::None => (step, step),
                    Jitter::Full => (Duration::ZERO, step),
                    Jitter::Equal => (step / 2, step),
                    Jitter::Decorrelated => {
                        let least = first.min(ceiling);
                        (least, before.saturating_mul(3).min(ceiling).max(least))
                    }
                };
                prop_assert!(least <= pause && pause <= most, "{retry}: {pause:?}");
                before = pause;
            }
        }
    }
}
