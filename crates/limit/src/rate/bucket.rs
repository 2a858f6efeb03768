//! One limit: governor's token bucket, and a queue for its tokens.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::{RateStatus, RateSubject};

/// One limit: a token bucket, and a queue for its tokens.
///
/// A waiting call queues for the *turn*, a fair semaphore of one permit, and only the call that
/// holds it asks for a token. So a new token wakes one call, and the calls pass in order.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_minute: f64,
    /// The time from one token to the next.
    period: Duration,
    /// The time from an empty bucket to a full one.
    refill: Duration,
    clock: TokioClock,
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
    turn: Semaphore,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    waiting: u32,
    /// When the first waiting call gets its token.
    first_due: Instant,
    last_used: Instant,
    waited: u64,
    refused: u64,
}

/// One call per year. Governor counts nanoseconds in 64 bits and panics beyond.
const MAX_PERIOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Bucket {
    /// Makes a full bucket. `None` if the rate is invalid, or above one call per nanosecond.
    pub(crate) fn new(per_minute: f64, burst: Duration) -> Option<Self> {
        let quota = quota(per_minute, burst)?;
        let (clock, now) = (TokioClock(Instant::now()), Instant::now());
        Some(Self {
            per_minute,
            period: quota.replenish_interval(),
            refill: quota.burst_size_replenished_in(),
            limiter: RateLimiter::direct_with_clock(quota, clock),
            clock,
            turn: Semaphore::new(1),
            queue: Mutex::new(Queue {
                waiting: 0,
                first_due: now,
                last_used: now,
                waited: 0,
                refused: 0,
            }),
        })
    }

    /// Takes a token if there is one and no call waits for it.
    pub(crate) fn try_acquire(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.last_used = Instant::now();
        queue.waiting == 0 && self.check().is_ok()
    }

    /// Takes a token, now or when the call's turn comes, but not after `until`. If that is too
    /// late, returns the time until the turn.
    pub(crate) async fn acquire(self: &Arc<Self>, until: Instant) -> Result<(), Duration> {
        let result = match self.join(until) {
            Ok(None) => return Ok(()),
            Ok(Some(waiting)) => waiting.turn(until).await,
            Err(wait) => Err(wait),
        };
        let mut queue = self.queue.lock();
        match result {
            Ok(()) => queue.waited += 1,
            Err(_) => queue.refused += 1,
        }
        result
    }

    pub(crate) const fn per_minute(&self) -> f64 {
        self.per_minute
    }

    /// Returns `true` if it was unused for long enough to have all tokens, as a new one has.
    pub(crate) fn is_full(&self) -> bool {
        let queue = self.queue.lock();
        queue.waiting == 0 && queue.last_used.elapsed() >= self.refill
    }

    pub(crate) fn status(&self, subject: RateSubject) -> RateStatus {
        let queue = self.queue.lock();
        RateStatus {
            subject,
            calls_per_minute: self.per_minute,
            waiting: queue.waiting as usize,
            waited: queue.waited,
            refused: queue.refused,
        }
    }

    /// Joins the queue, or takes a token if there is one and no call waits.
    fn join(self: &Arc<Self>, until: Instant) -> Result<Option<Waiting>, Duration> {
        let mut queue = self.queue.lock();
        if queue.waiting == 0 {
            match self.check() {
                Ok(()) => return Ok(None),
                Err(wait) => queue.first_due = after(wait),
            }
        }
        let first = queue.first_due.saturating_duration_since(Instant::now());
        let wait = first.saturating_add(self.period.saturating_mul(queue.waiting));
        if after(wait) > until {
            return Err(wait);
        }
        queue.waiting += 1;
        Ok(Some(Waiting(self.clone())))
    }

    /// Takes a token, or returns the time until there is one.
    fn check(&self) -> Result<(), Duration> {
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

/// A call in the queue, until dropped.
struct Waiting(Arc<Bucket>);

impl Waiting {
    async fn turn(self, until: Instant) -> Result<(), Duration> {
        let bucket = &self.0;
        // a call that holds the turn and is not polled must not keep the others beyond their time
        let Ok(_turn) = timeout_at(until, bucket.turn.acquire()).await else {
            let due = bucket.queue.lock().first_due;
            return Err(due.saturating_duration_since(Instant::now()));
        };
        loop {
            let wait = {
                let mut queue = bucket.queue.lock();
                let Err(wait) = bucket.check() else {
                    queue.first_due = after(bucket.period);
                    return Ok(());
                };
                queue.first_due = after(wait);
                wait
            };
            if after(wait) > until {
                return Err(wait);
            }
            sleep(wait).await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.waiting = queue.waiting.saturating_sub(1);
    }
}

/// Returns the moment after a time, no more than a century away: beyond any deadline.
pub(crate) fn after(time: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    Instant::now() + time.min(CENTURY)
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
            let interval = quota.replenish_interval().as_nanos();
            let found = (interval, quota.burst_size().get());
            assert_eq!(found, (period, burst), "{per_minute}");
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
