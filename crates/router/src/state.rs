//! What is counted for one server, whatever snapshots of its set come and go.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::health::{HealthChange, ServerHealth, SetHealth, Ticket, Verdict};

/// What is counted for one server: shared by all snapshots that have it, by its id.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    in_flight: AtomicUsize,
    draining: AtomicBool,
    health: ServerHealth,
    /// Woken when a draining server has nothing in flight any more.
    idle: Notify,
}

impl ServerState {
    /// Returns how many calls were given to the server that have not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn health(&self) -> &ServerHealth {
        &self.health
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sets whether the server gets new calls.
    pub(crate) fn set_draining(&self, draining: bool) {
        // against `begin`: whoever comes second sees the other
        self.draining.store(draining, Ordering::SeqCst);
    }

    /// Counts one call until the guard is dropped; none where the server is drained meanwhile.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<InFlight> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let counted = InFlight {
            state: self.clone(),
            ticket: Ticket::Extra,
        };
        (!self.draining.load(Ordering::SeqCst)).then_some(counted)
    }

    /// Waits until nothing is in flight. Comes to an end only where nothing new begins.
    pub(crate) async fn idle(&self) {
        loop {
            let woken = self.idle.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return;
            }
            woken.await;
        }
    }
}

/// One call in flight: counted until dropped. Its outcome counts for the server's health, once; one
/// that is dropped without an outcome counts as nothing.
#[derive(Debug)]
pub(crate) struct InFlight {
    state: Arc<ServerState>,
    ticket: Ticket,
}

impl InFlight {
    /// Says how its outcome will count.
    pub(crate) fn with_ticket(mut self, ticket: Ticket) -> Self {
        self.ticket = ticket;
        self
    }

    /// Counts its outcome.
    pub(crate) fn settle(&mut self, verdict: Verdict, set: &SetHealth) -> Option<HealthChange> {
        let ticket = mem::replace(&mut self.ticket, Ticket::Extra);
        self.state.health.settle(ticket, verdict, set, Instant::now)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Ticket::Probe(probe) = self.ticket {
            self.state.health.give_back(probe);
        }
        let before = self.state.in_flight.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.state.draining.load(Ordering::SeqCst) {
            self.state.idle.notify_waiters();
        }
    }
}
