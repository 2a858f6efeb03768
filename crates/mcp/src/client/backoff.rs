//! How long to wait before the next attempt to connect.

use std::time::Duration;

use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// At once, then 100 ms doubling up to a cap, each shortened by up to half at random.
#[derive(Debug)]
pub(super) struct Backoff {
    cap: Duration,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(cap: Duration) -> Self {
        Self { cap, failures: 0 }
    }

    /// Returns the next pause; `random` is from 0 to 1.
    fn next(&mut self, random: f64) -> Duration {
        let doublings = self.failures.checked_sub(1);
        self.failures = self.failures.saturating_add(1);
        doublings.map_or(Duration::ZERO, |doublings| {
            let full = FIRST_PAUSE
                .saturating_mul(2_u32.saturating_pow(doublings))
                .min(self.cap);
            full.mul_f64(0.5 + random / 2.0)
        })
    }

    /// Waits until it is time for the next attempt.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.next(fastrand::f64())).await;
    }

    /// Takes note that what was connected since then has ended. Only what lasted for as long as
    /// the longest pause resets the pauses.
    pub(super) fn ended(&mut self, since: Instant) {
        if since.elapsed() >= self.cap {
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_start_at_nothing_and_end_at_the_cap() {
        let cap = Duration::from_secs(5);
        let mut backoff = Backoff::new(cap);
        let millis: Vec<_> = (0..9).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(millis, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.next(0.0).as_millis(), 2500);
        let since = Instant::now();
        backoff.ended(since);
        assert!(backoff.next(1.0) > Duration::ZERO);
        tokio::time::advance(cap).await;
        backoff.ended(since);
        assert_eq!(backoff.next(1.0), Duration::ZERO);
    }
}
