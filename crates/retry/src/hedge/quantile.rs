//! How long a tool takes: a histogram that counts without locks, and forgets.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What was measured of one tool.
///
/// Each octave of time has 16 places of equal width, so what is told is at most a sixteenth above
/// what was seen, never below. At [`WINDOW`] observations all counts are halved: what a tool did long
/// ago fades.
///
/// Threads that observe at the same time may see a quantile that misses the other's last
/// observation. Nothing depends on more.
#[derive(Debug)]
pub(crate) struct Quantile {
    counts: [AtomicU32; PLACES],
    held: AtomicU32,
    /// In nanoseconds; 0 until enough was seen.
    value: AtomicU64,
}

impl Quantile {
    pub(crate) fn new() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU32::new(0)),
            held: AtomicU32::new(0),
            value: AtomicU64::new(0),
        }
    }

    /// Returns the time that `percent` of the observations do not exceed, as of the last look at them.
    pub(crate) fn value(&self) -> Option<Duration> {
        match self.value.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Returns how much is held of what was seen.
    pub(crate) fn held(&self) -> u32 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes one observation in.
    pub(crate) fn observe(&self, took: Duration, percent: u32, min_observations: u32) {
        let Some(count) = self.counts.get(place_of(took)) else {
            return;
        };
        count.fetch_add(1, Ordering::Relaxed);
        let held = self.held.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // one thread sees each number, so one thread halves
        if held.is_multiple_of(WINDOW) {
            self.halve();
        }
        let looks = held < LOOK_ALWAYS || held.is_multiple_of(LOOK_EVERY);
        if looks && held >= min_observations {
            self.value.store(self.look(percent), Ordering::Relaxed);
        }
    }

    /// Finds the quantile by nearest rank, told as the end of its place.
    fn look(&self, percent: u32) -> u64 {
        let counts = || self.counts.iter().map(|c| c.load(Ordering::Relaxed));
        let all: u64 = counts().map(u64::from).sum();
        let rank = (all * u64::from(percent)).div_ceil(100).max(1);
        let mut below = 0;
        let place = counts().position(|count| {
            below += u64::from(count);
            below >= rank
        });
        end_of(place.unwrap_or(PLACES))
    }

    /// Halves all counts. What is odd is carried to the next place: rounding each down would forget the
    /// slow ones first, of which there are few in each place.
    fn halve(&self) {
        let (mut odd, mut gone) = (0, 0_u32);
        for count in &self.counts {
            let twice = count.load(Ordering::Relaxed).saturating_add(odd);
            odd = twice % 2;
            count.fetch_sub(twice / 2, Ordering::Relaxed);
            gone = gone.saturating_add(twice / 2);
        }
        self.held.fetch_sub(gone, Ordering::Relaxed);
    }
}

/// Returns which place a time falls into.
fn place_of(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    if nanos < 1 << FIRST_OCTAVE {
        return 0;
    }
    let octave = nanos.ilog2();
    let within = (nanos >> (octave - WIDTH)) as usize & (PER_OCTAVE - 1);
    let place = 1 + (octave - FIRST_OCTAVE) as usize * PER_OCTAVE + within;
    place.min(PLACES - 1)
}

/// Returns the first time that is beyond a place, in nanoseconds.
fn end_of(place: usize) -> u64 {
    let Some(place) = place.checked_sub(1) else {
        return 1 << FIRST_OCTAVE;
    };
    let within = (place % PER_OCTAVE) as u64;
    let octave = FIRST_OCTAVE + (place / PER_OCTAVE) as u32;
    (PER_OCTAVE as u64 + within + 1) << (octave - WIDTH)
}

/// As many observations and all counts are halved.
pub(crate) const WINDOW: u32 = 2048;
/// Below this, each observation may change much; above, a look costs more than it tells.
const LOOK_ALWAYS: u32 = 64;
const LOOK_EVERY: u32 = 16;
/// Shorter times, below 66 µs, are all alike.
const FIRST_OCTAVE: u32 = 16;
/// Longer times, from 73 minutes on, too.
const OCTAVES: usize = 26;
const WIDTH: u32 = 4;
const PER_OCTAVE: usize = 1 << WIDTH;
const PLACES: usize = 1 + OCTAVES * PER_OCTAVE;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn observed(all: impl IntoIterator<Item = Duration>) -> Quantile {
        let quantile = Quantile::new();
        for took in all {
            quantile.observe(took, 95, 20);
        }
        quantile
    }

    #[test]
    fn nothing_is_told_before_enough_was_seen() {
        let quantile = observed((1..20).map(Duration::from_millis));
        assert_eq!(quantile.value(), None);
        quantile.observe(Duration::from_millis(20), 95, 20);
        assert!(quantile.value().is_some());
    }

    #[test]
    fn what_a_tool_did_long_ago_fades() {
        let quantile = observed((0..5000).map(|_| Duration::from_secs(1)));
        for _ in 0..20_000 {
            quantile.observe(Duration::from_millis(10), 95, 20);
        }
        assert!(quantile.value().unwrap() < Duration::from_millis(11));
        assert!(quantile.held() < WINDOW);
    }

    #[test]
    fn rare_slow_calls_are_not_forgotten_by_halving() {
        // one in ten is slow, each in a place of its own for a while
        let quantile = observed((0..100_000_u64).map(|n| match n % 10 {
            0 => Duration::from_millis(1000 + n % 997),
            _ => Duration::from_millis(10),
        }));
        assert!(quantile.value().unwrap() > Duration::from_secs(1));
    }

    #[test]
    fn threads_lose_no_observation() {
        let quantile = Quantile::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..500 {
                        quantile.observe(Duration::from_micros(n * 97), 95, 20);
                    }
                });
            }
        });
        assert_eq!(quantile.held(), 2000);
        let counted: u32 = quantile
            .counts
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .sum();
        assert_eq!(counted, 2000);
    }

    proptest! {
        #[test]
        fn each_time_lies_within_its_place(nanos in any::<u64>()) {
            let place = place_of(Duration::from_nanos(nanos));
            if place < PLACES - 1 {
                prop_assert!(nanos < end_of(place));
            }
            if let Some(before) = place.checked_sub(1) {
                prop_assert!(nanos >= end_of(before));
            }
        }

        #[test]
        fn the_quantile_is_at_most_a_sixteenth_above_the_exact_one(
            mut micros in prop::collection::vec(100_u64..600_000_000, 20..1000),
        ) {
            let told = observed(micros.iter().copied().map(Duration::from_micros)).value();
            // looked at with the last multiple of 16, so cut there
            if micros.len() >= LOOK_ALWAYS as usize {
                micros.truncate(micros.len() / 16 * 16);
            }
            micros.sort_unstable();
            let rank = (micros.len() * 95).div_ceil(100);
            let exact = Duration::from_micros(micros[rank - 1]);
            prop_assert!(told.unwrap() >= exact);
            prop_assert!(told.unwrap() <= exact + exact / 16 + Duration::from_nanos(1));
        }
    }
}
