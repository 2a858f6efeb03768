//! From a rate to a quota that governor can count with.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::Quota;

/// Calls so many a minute, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    pub(crate) per_minute: f64,
    /// From one cell to the next.
    pub(crate) every: Duration,
    pub(crate) burst: NonZeroU32,
}

impl Rate {
    /// Reads a number of calls a minute. `None` for what is no rate, or more than one call a
    /// nanosecond, which is none to hold to.
    pub(crate) fn new(per_minute: f64, burst: Duration) -> Option<Self> {
        if !(per_minute.is_finite() && per_minute > 0.0) {
            return None;
        }
        let every = Duration::try_from_secs_f64(60.0 / per_minute)
            .unwrap_or(SLOWEST)
            .min(SLOWEST);
        if every.is_zero() {
            return None;
        }
        // rounded down, and a float that does not fit ends at the largest number there is; the
        // small step up keeps what should be whole from being a hair less
        let at_once = (burst.as_secs_f64() / every.as_secs_f64() + 1e-9) as u32;
        Some(Self {
            per_minute,
            every,
            burst: NonZeroU32::new(at_once).unwrap_or(NonZeroU32::MIN),
        })
    }

    pub(crate) fn quota(&self) -> Option<Quota> {
        Quota::with_period(self.every).map(|quota| quota.allow_burst(self.burst))
    }
}

/// One call a year. What comes still more rarely is not told from it: governor counts nanoseconds
/// in 64 bits, and panics beyond.
const SLOWEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn a_rate_is_cells_at_even_times_and_a_burst() {
        let cases = [
            (60.0, 1_000_000_000, 10),
            (30.0, 2_000_000_000, 5),
            (12.0, 5_000_000_000, 2),
            (1.0, 60_000_000_000, 1),
            (600.0, 100_000_000, 100),
            (0.5, 120_000_000_000, 1),
        ];
        for (per_minute, every, burst) in cases {
            let rate = Rate::new(per_minute, TEN).unwrap();
            assert_eq!(rate.every.as_nanos(), every, "{per_minute}");
            assert_eq!(rate.burst.get(), burst, "{per_minute}");
            assert!(rate.quota().is_some());
        }
    }

    #[test]
    fn any_number_is_a_rate_or_none() {
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e12] {
            assert_eq!(Rate::new(none, TEN), None, "{none}");
        }
        for odd in [f64::MIN_POSITIVE, 1e-300, 1e-9, 6e10] {
            let rate = Rate::new(odd, Duration::from_secs(3600)).unwrap();
            assert!(rate.every <= SLOWEST && rate.quota().is_some(), "{odd}");
        }
    }
}
