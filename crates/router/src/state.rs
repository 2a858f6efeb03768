//! What is counted for one server, shared by all snapshots of its set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use callward_core::Weight;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ewma::Estimate;
use crate::outcome::Outcome;
use crate::stats::Tally;

/// What is counted for one server, shared by all snapshots that have it, by its id.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    in_flight: AtomicUsize,
    draining: AtomicBool,
    /// The weight in force since the server is in a set; a call may go by an earlier snapshot.
    weight: AtomicU32,
    pub(crate) tally: Mutex<Tally>,
    /// Notified when a draining server has nothing in flight any more.
    idle: Notify,
}

impl ServerState {
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sets whether the server gets no new calls.
    pub(crate) fn set_draining(&self, draining: bool) {
        // against `begin`: whichever comes second sees the other
        self.draining.store(draining, Ordering::SeqCst);
        if !draining {
            self.idle.notify_waiters();
        }
    }

    pub(crate) fn set_weight(&self, weight: Weight) {
        self.weight.store(weight.get(), Ordering::SeqCst);
    }

    /// Counts one call until the guard is dropped. `None` if the server is drained by now, or too
    /// light for the call: it may have been chosen from an earlier snapshot.
    pub(crate) fn begin(self: &Arc<Self>, min_weight: u32) -> Option<InFlight> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let is_open = !self.draining.load(Ordering::SeqCst);
        let is_heavy_enough = min_weight == 0 || self.weight.load(Ordering::SeqCst) >= min_weight;
        if !(is_open && is_heavy_enough) {
            self.leave();
            return None;
        }
        Some(InFlight {
            state: self.clone(),
            sent: None,
            outcome: Outcome::Cancelled,
        })
    }

    fn leave(&self) {
        let before = self.in_flight.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.draining.load(Ordering::SeqCst) {
            self.idle.notify_waiters();
        }
    }

    /// Returns how long calls take and how they fail.
    pub(crate) fn estimate(&self) -> Estimate {
        self.tally.lock().ewma.estimate(Instant::now())
    }
}

/// One call that was given to a server. Dropped before its end, it counts as cancelled.
#[derive(Debug)]
pub(crate) struct InFlight {
    state: Arc<ServerState>,
    sent: Option<Instant>,
    outcome: Outcome,
}

impl InFlight {
    /// The call is sent now: its time begins.
    pub(crate) fn send(&mut self) {
        self.sent = Some(Instant::now());
    }

    /// Sets how the call ended.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let now = Instant::now();
        let took = self.sent.map_or(Duration::ZERO, |sent| now - sent);
        // counted first, so that a server seen as idle has learned from its calls
        self.state.tally.lock().count(self.outcome, took, now);
        self.state.leave();
    }
}

/// A server that gets no new calls since it was drained or removed. Calls that were given to it
/// before run to their end, those too that wait for a place or for their turn there.
///
/// Dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct Draining(pub(crate) Arc<ServerState>);

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Drained {
    /// Nothing is in flight any more.
    Idle,
    /// The server gets calls again, before the last one ended.
    Undrained,
}

impl Draining {
    /// Returns how many calls have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    /// Waits until the last call has ended. The calls' own timeouts and deadlines bound how long
    /// that is. Dropping the future leaves the server drained.
    pub async fn finished(&self) -> Drained {
        let state = &self.0;
        loop {
            let woken = state.idle.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !state.draining.load(Ordering::SeqCst) {
                return Drained::Undrained;
            }
            if state.in_flight.load(Ordering::SeqCst) == 0 {
                return Drained::Idle;
            }
            woken.await;
        }
    }
}
