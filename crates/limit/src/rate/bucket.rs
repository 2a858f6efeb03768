//! One limit: a token bucket, and a queue for its tokens.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::tokens::Tokens;
use super::{RateStatus, RateSubject};

/// One limit: a token bucket, and a queue for its tokens.
///
/// A waiting call queues for the *turn*, a fair semaphore of one permit, and only the call that
/// holds it asks for a token. So a new token wakes one call, and the calls pass in order.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_minute: f64,
    tokens: Tokens,
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

impl Bucket {
    /// Makes a full bucket. `None` if the rate is invalid, or above one call per nanosecond.
    pub(crate) fn new(per_minute: f64, burst: Duration) -> Option<Self> {
        let now = Instant::now();
        Some(Self {
            per_minute,
            tokens: Tokens::new(per_minute, burst)?,
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
        queue.waiting == 0 && self.tokens.take().is_ok()
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
        queue.waiting == 0 && queue.last_used.elapsed() >= self.tokens.refill
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
            match self.tokens.take() {
                Ok(()) => return Ok(None),
                Err(wait) => queue.first_due = after(wait),
            }
        }
        let first = queue.first_due.saturating_duration_since(Instant::now());
        let wait = first.saturating_add(self.tokens.period.saturating_mul(queue.waiting));
        if after(wait) > until {
            return Err(wait);
        }
        queue.waiting += 1;
        Ok(Some(Waiting(self.clone())))
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
                let Err(wait) = bucket.tokens.take() else {
                    queue.first_due = after(bucket.tokens.period);
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
