//! Ends requests when their time is over, also where no call waits.

use std::sync::Weak;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::clock::{millis, now_ms};
use crate::manager::Inner;
use crate::step::Step;
use crate::{ApprovalError, Approvals, Request, State};

/// How often those who share a store look whether another changed it, and the shortest pause
/// between two sweeps.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Of a store that fails, the pause before it is asked again.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// How long a call may run before it counts as lost, if the process that ran it does not come back.
const LONGEST_RUN: Duration = Duration::from_secs(24 * 60 * 60);
/// How long ended requests are kept.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// How many ended requests are kept.
const MAX_ENDED: usize = 10_000;
/// After how many requests that grants approved the ended ones are removed: as no person decides
/// each, there may be many between two sweeps.
const GRANTED: usize = 1_000;

/// Sweeps until all [`Approvals`] are gone.
pub(crate) async fn run(inner: Weak<Inner>) {
    let mut next = Instant::now() + PAUSE;
    loop {
        sleep_until(next).await;
        let Some(approvals) = inner.upgrade().map(Approvals) else {
            return;
        };
        let pause = match approvals.sweep().await {
            // what ends before its time is removed then too
            Ok(pause) => pause.clamp(PAUSE, LONGEST_PAUSE),
            Err(error) => {
                tracing::warn!(%error, "requests for approval are not swept");
                AFTER_FAILURE
            }
        };
        next = Instant::now() + pause;
    }
}

/// Returns how long a request can still be decided, or run.
pub(crate) fn left(request: &Request) -> Duration {
    Duration::from_millis(request.expires_ms.saturating_sub(now_ms()))
}

/// Returns `true` if a sweep changes or removes the request.
pub(crate) fn is_over(request: &Request, now: u64) -> bool {
    let is_old = request.since_ms.saturating_add(millis(KEEP)) < now;
    request.is_overdue(now) || (is_old && request.state.is_ended())
}

/// Returns when a pending request is to be looked at again, if nothing wakes before.
pub(crate) fn deadline(request: &Request, is_shared: bool) -> Instant {
    let left = left(request);
    Instant::now() + if is_shared { left.min(PAUSE) } else { left }
}

impl Approvals {
    /// Sweeps now and then while grants approve requests.
    pub(crate) async fn bound_granted(&self) -> Result<(), ApprovalError> {
        let granted = self.0.granted.fetch_add(1, Relaxed).wrapping_add(1);
        if granted.is_multiple_of(GRANTED) {
            self.sweep().await?;
        }
        Ok(())
    }

    /// Ends what is over and removes what ended long ago. Returns the time to the next end: of a
    /// request that is not made yet, that is the whole lifetime.
    pub(crate) async fn sweep(&self) -> Result<Duration, ApprovalError> {
        let config = &self.0.config;
        let now = now_ms();
        let mut next = millis(config.expires);
        for request in self.0.store.list().await? {
            let run = request.since_ms.saturating_add(millis(LONGEST_RUN));
            match request.state {
                State::Consumed if now >= run => self.try_step(&request.id, Step::Lose).await?,
                _ if request.is_overdue(now) => self.try_step(&request.id, Step::Expire).await?,
                State::Pending | State::Approved => next = next.min(request.expires_ms - now),
                _ => {}
            }
        }
        self.sweep_grants().await?;
        let before = now.saturating_sub(millis(KEEP));
        self.0.store.remove_ended(before, MAX_ENDED).await?;
        Ok(Duration::from_millis(next))
    }
}
