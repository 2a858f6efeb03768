//! How long to wait before a repeat: a pure function of the step and a source of chance.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The schedule of the pauses: exponential with factor 2, jittered, never above a ceiling.
///
/// The ceiling bounds what is drawn from, jitter included. So no pause is longer, and the pauses of
/// a long outage do not all meet at the ceiling, as they would if the draw were cut afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backoff {
    /// What is left to chance. Default: [`Jitter::Full`].
    pub jitter: Jitter,
    /// The longest pause, unless a server asks for a longer one. Default: 10 s.
    pub ceiling: Duration,
}

impl Backoff {
    /// States a schedule.
    #[must_use]
    pub const fn new(jitter: Jitter, ceiling: Duration) -> Self {
        Self { jitter, ceiling }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Jitter::Full, Duration::from_secs(10))
    }
}

/// What of a pause is left to chance, so that calls which failed together do not return together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Jitter {
    /// Between the first step and three times the pause before: grows unevenly, forgets the number
    /// of the repeat.
    Decorrelated,
    /// Half of the step is certain, the other half is chance: never too soon.
    Equal,
    /// All of the step is chance: spreads best.
    #[default]
    Full,
    /// Nothing: the step itself.
    None,
}

/// Which repeat of a call it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Counts from 0.
    pub(crate) repeat: u32,
    /// The step of repeat 0, from the tool's plan.
    pub(crate) first: Duration,
    /// The pause before the last repeat; zero at repeat 0.
    pub(crate) previous: Duration,
    /// Not sooner than this, as the server asked. May exceed the ceiling.
    pub(crate) floor: Option<Duration>,
}

/// Returns the pause before a repeat.
pub(crate) fn delay(backoff: &Backoff, step: &Step, rng: &mut fastrand::Rng) -> Duration {
    let factor = 1_u32.checked_shl(step.repeat).unwrap_or(u32::MAX);
    let grown = step.first.saturating_mul(factor).min(backoff.ceiling);
    let pause = match backoff.jitter {
        Jitter::Decorrelated => {
            let first = step.first.min(backoff.ceiling);
            let widest = step.previous.saturating_mul(3).min(backoff.ceiling);
            between(first, widest.max(first), rng)
        }
        Jitter::Equal => between(grown / 2, grown, rng),
        Jitter::Full => between(Duration::ZERO, grown, rng),
        Jitter::None => grown,
    };
    pause.max(step.floor.unwrap_or_default())
}

/// Draws between two durations, both included, `low` not above `high`. In integers: no step is too
/// coarse to be jittered, and none can overflow.
fn between(low: Duration, high: Duration, rng: &mut fastrand::Rng) -> Duration {
    let range = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX);
    low.saturating_add(Duration::from_nanos(rng.u64(0..=range)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JITTERS: [Jitter; 4] = [
        Jitter::Decorrelated,
        Jitter::Equal,
        Jitter::Full,
        Jitter::None,
    ];

    fn pauses(jitter: Jitter, seed: u64, count: u32) -> Vec<Duration> {
        let backoff = Backoff::new(jitter, Duration::from_secs(10));
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut previous = Duration::ZERO;
        (0..count)
            .map(|repeat| {
                let step = Step {
                    repeat,
                    first: Duration::from_millis(100),
                    previous,
                    floor: None,
                };
                previous = delay(&backoff, &step, &mut rng);
                previous
            })
            .collect()
    }

    #[test]
    fn without_jitter_each_pause_is_twice_the_one_before_up_to_the_ceiling() {
        let millis: Vec<_> = pauses(Jitter::None, 0, 9)
            .iter()
            .map(Duration::as_millis)
            .collect();
        assert_eq!(
            millis,
            [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
    }

    #[test]
    fn long_steps_are_jittered_as_finely_as_short_ones() {
        for seed in 0..20 {
            for jitter in [Jitter::Decorrelated, Jitter::Equal, Jitter::Full] {
                let last = pauses(jitter, seed, 9)[8];
                assert_ne!(last.subsec_nanos() % 1_000_000, 0, "{jitter:?} {last:?}");
            }
        }
    }

    #[test]
    fn full_jitter_uses_the_whole_step_and_equal_jitter_its_upper_half() {
        let fourth = |jitter| (0..200).map(move |seed| pauses(jitter, seed, 4)[3]);
        let (quarter, half, whole) = (
            Duration::from_millis(200),
            Duration::from_millis(400),
            Duration::from_millis(800),
        );
        assert!(fourth(Jitter::Full).any(|pause| pause < quarter));
        assert!(fourth(Jitter::Full).any(|pause| pause > whole - quarter));
        assert!(fourth(Jitter::Equal).all(|pause| pause >= half && pause <= whole));
        assert!(fourth(Jitter::Equal).any(|pause| pause > whole - quarter));
    }

    #[test]
    fn the_same_seed_gives_the_same_pauses_and_another_gives_others() {
        for jitter in [Jitter::Decorrelated, Jitter::Equal, Jitter::Full] {
            assert_eq!(pauses(jitter, 7, 8), pauses(jitter, 7, 8));
            assert_ne!(pauses(jitter, 7, 8), pauses(jitter, 8, 8));
        }
    }

    fn durations() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0_u64..100_000).prop_map(Duration::from_millis),
            (any::<u64>(), 0_u32..1_000_000_000)
                .prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        ]
    }

    proptest! {
        #[test]
        fn a_pause_is_never_above_the_ceiling_nor_below_the_floor(
            jitter in prop::sample::select(&JITTERS[..]),
            ceiling in durations(),
            first in durations(),
            previous in durations(),
            floor in prop::option::of(durations()),
            repeat in any::<u32>(),
            seed in any::<u64>(),
        ) {
            let step = Step { repeat, first, previous, floor };
            let mut rng = fastrand::Rng::with_seed(seed);
            let pause = delay(&Backoff::new(jitter, ceiling), &step, &mut rng);
            let floor = floor.unwrap_or_default();
            prop_assert!(pause >= floor);
            prop_assert!(pause <= ceiling.max(floor));
        }
    }
}
