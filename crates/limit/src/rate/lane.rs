//! One limit, and the line before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::NotKeyed;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::cell::Cells;
use super::clock::TokioClock;
use super::quota::Rate;

/// One limit, and the line before it.
///
/// Whoever waits stands in line for the *turn*, a semaphore with one permit, which is fair. Only who
/// has the turn looks whether a cell is due, so a cell that becomes due wakes one call and not all,
/// and calls pass in the order in which they came. While anybody waits, nobody passes by.
#[derive(Debug)]
pub(crate) struct Lane {
    rate: Rate,
    clock: TokioClock,
    cells: Cells,
    limiter: RateLimiter<NotKeyed, Cells, TokioClock, NoOpMiddleware<Duration>>,
    turn: Semaphore,
    /// Changed under the line's lock only; read without, by calls that may not have to wait.
    waiting: AtomicUsize,
    /// When the first in line gets its cell.
    line: Mutex<Instant>,
    waited: AtomicU64,
    refused: AtomicU64,
}

/// Refused: the call's turn would come too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLate {
    /// How long until then, as things are now.
    pub(crate) wait: Duration,
}

/// What a lane is at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) per_minute: f64,
    pub(crate) waiting: usize,
    pub(crate) waited: u64,
    pub(crate) refused: u64,
}

impl Lane {
    /// `None` if governor takes it for no rate.
    pub(crate) fn new(rate: Rate) -> Option<Self> {
        let clock = TokioClock::start();
        let cells = Cells::default();
        Some(Self {
            limiter: RateLimiter::new(rate.quota()?, cells.clone(), clock),
            turn: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            line: Mutex::new(Instant::now()),
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            rate,
            clock,
            cells,
        })
    }

    pub(crate) const fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Takes a cell if there is one and nobody waits for it.
    pub(crate) fn take_at_once(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0 && self.limiter.check().is_ok()
    }

    /// Takes a cell, now or when the call's turn comes, but not after `until`.
    pub(crate) async fn take(self: &Arc<Self>, until: Instant) -> Result<(), TooLate> {
        let result = match self.get_in_line(until) {
            Ok(None) => return Ok(()),
            Ok(Some(place)) => place.wait(until).await,
            Err(late) => Err(late),
        };
        let count = match result {
            Ok(()) => &self.waited,
            Err(_) => &self.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// Gives a cell back that was not used.
    pub(crate) fn give_back(&self) {
        self.cells.give_back(self.rate.every);
    }

    /// Says whether it holds nothing that a new one would not.
    pub(crate) fn is_idle(&self) -> bool {
        // the limiter began to count a little after the clock
        let since_made = self.clock.now().saturating_sub(Duration::from_millis(1));
        self.waiting.load(Ordering::Acquire) == 0 && self.cells.is_full(since_made)
    }

    pub(crate) fn read(&self) -> Reading {
        Reading {
            per_minute: self.rate.per_minute,
            waiting: self.waiting.load(Ordering::Relaxed),
            waited: self.waited.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Takes a cell if nobody waits and there is one, and a place in line if not.
    fn get_in_line(self: &Arc<Self>, until: Instant) -> Result<Option<InLine>, TooLate> {
        let mut first_due = self.line.lock();
        let ahead = self.waiting.load(Ordering::Relaxed);
        if ahead == 0 {
            match self.check() {
                None => return Ok(None),
                Some(due) => *first_due = due,
            }
        }
        let now = Instant::now();
        let ahead_for = u32::try_from(ahead)
            .ok()
            .and_then(|ahead| self.rate.every.checked_mul(ahead))
            .unwrap_or(Duration::MAX);
        let wait = first_due
            .saturating_duration_since(now)
            .saturating_add(ahead_for);
        if now.checked_add(wait).is_none_or(|due| due > until) {
            return Err(TooLate { wait });
        }
        self.waiting.store(ahead + 1, Ordering::Release);
        drop(first_due);
        Ok(Some(InLine {
            lane: self.clone(),
            waits: true,
        }))
    }

    /// Takes a cell, or says when one is due.
    fn check(&self) -> Option<Instant> {
        let due = self.limiter.check().err()?.earliest_possible();
        // what the clock cannot say is beyond any deadline
        Some(
            self.clock
                .at(due)
                .unwrap_or_else(|| far_away(Instant::now())),
        )
    }
}

/// Sooner than the end of any clock, later than any call.
pub(crate) fn far_away(now: Instant) -> Instant {
    now + Duration::from_secs(30 * 365 * 24 * 60 * 60)
}

/// One call in line, until dropped or served.
struct InLine {
    lane: Arc<Lane>,
    waits: bool,
}

impl InLine {
    async fn wait(mut self, until: Instant) -> Result<(), TooLate> {
        let lane = self.lane.clone();
        // whoever has the turn and is not polled would keep all others here, hence the end
        let turn = timeout_at(until, lane.turn.acquire()).await;
        let Ok(_turn) = turn else {
            let wait = lane.line.lock().saturating_duration_since(Instant::now());
            return Err(TooLate { wait });
        };
        while let Some(due) = self.take_if_due() {
            if due > until {
                let wait = due.saturating_duration_since(Instant::now());
                return Err(TooLate { wait });
            }
            sleep_until(due).await;
        }
        Ok(())
    }

    /// Takes a cell and leaves the line, both at once for all who look; or says when one is due.
    fn take_if_due(&mut self) -> Option<Instant> {
        let mut first_due = self.lane.line.lock();
        let due = self.lane.check();
        match due {
            Some(due) => *first_due = due,
            None => {
                // at the latest: who is next will know better
                *first_due = Instant::now() + self.lane.rate.every;
                self.lane.waiting.fetch_sub(1, Ordering::Release);
                self.waits = false;
            }
        }
        due
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        if self.waits {
            let _line = self.lane.line.lock();
            self.lane.waiting.fetch_sub(1, Ordering::Release);
        }
    }
}
