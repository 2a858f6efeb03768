//! The tokens of one limit, kept by governor.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// The tokens of one limit.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// The time from one token to the next.
    pub(crate) period: Duration,
    /// The time from an empty bucket to a full one.
    pub(crate) refill: Duration,
    clock: TokioClock,
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
}

/// One call per year. Governor counts nanoseconds in 64 bits and panics beyond.
const MAX_PERIOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Tokens {
    /// Makes a full bucket. `None` if the rate is invalid, or above one call per nanosecond.
    pub(crate) fn new(per_minute: f64, burst: Duration) -> Option<Self> {
        let quota = quota(per_minute, burst)?;
        let clock = TokioClock(Instant::now());
        Some(Self {
            period: quota.replenish_interval(),
            refill: quota.burst_size_replenished_in(),
            limiter: RateLimiter::direct_with_clock(quota, clock),
            clock,
        })
    }

    /// Takes a token, or returns the time until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        let now = self.clock.now();
        let check = self.limiter.check();
        check.map_err(|not_until| not_until.earliest_possible().saturating_sub(now))
    }
}

/// Governor's clock on tokio's time, which tests can pause: the time since it was made.
#[derive(Debug, Clone, Copy)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Reads a rate as governor's quota. `None` if it is invalid, or above one call per nanosecond.
fn quota(per_minute: f64, burst: Duration) -> Option<Quota> {
    if !(per_minute.is_finite() && per_minute > 0.0) {
        return None;
    }
    let period = Duration::try_from_secs_f64(60.0 / per_minute)
        .unwrap_or(MAX_PERIOD)
        .min(MAX_PERIOD);
    // rounded down, after a small step up for what should be whole
    let tokens = (burst.as_secs_f64() / period.as_secs_f64() + 1e-9) as u32;
    let burst = NonZeroU32::new(tokens).unwrap_or(NonZeroU32::MIN);
    Some(Quota::with_period(period)?.allow_burst(burst))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn a_rate_becomes_a_period_and_a_burst() {
        let cases = [
            (60.0, 1_000_000_000, 10),
            (30.0, 2_000_000_000, 5),
            (12.0, 5_000_000_000, 2),
            (1.0, 60_000_000_000, 1),
            (600.0, 100_000_000, 100),
            (0.5, 120_000_000_000, 1),
        ];
        for (per_minute, period, burst) in cases {
            let quota = quota(per_minute, TEN).unwrap();
            assert_eq!(
                quota.replenish_interval().as_nanos(),
                period,
                "{per_minute}"
            );
            assert_eq!(quota.burst_size().get(), burst, "{per_minute}");
        }
        for invalid in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e12] {
            assert!(quota(invalid, TEN).is_none(), "{invalid}");
        }
        for extreme in [f64::MIN_POSITIVE, 1e-300, 1e-9, 6e10] {
            let quota = quota(extreme, Duration::from_secs(3600)).unwrap();
            assert!(quota.replenish_interval() <= MAX_PERIOD, "{extreme}");
        }
    }
}
