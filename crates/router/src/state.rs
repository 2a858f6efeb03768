//! What is counted for one server, whatever snapshots of its set come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tollgate_core::Weight;

use crate::drain::Drained;

/// What is counted for one server: shared by all snapshots that have it, by its id.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    in_flight: AtomicUsize,
    draining: AtomicBool,
    /// In force now, where a call still goes by a snapshot of before.
    weight: AtomicU32,
    /// Woken when a draining server has nothing in flight any more.
    idle: Notify,
}

impl ServerState {
    /// Returns how many calls were given to the server that have not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sets whether the server gets new calls.
    pub(crate) fn set_draining(&self, draining: bool) {
        // against `begin`: whoever comes second sees the other
        self.draining.store(draining, Ordering::SeqCst);
        if !draining {
            // who waits for the end of the drain has it
            self.idle.notify_waiters();
        }
    }

    /// Sets the weight in force.
    pub(crate) fn set_weight(&self, weight: Weight) {
        self.weight.store(weight.get(), Ordering::SeqCst);
    }

    /// Counts one call until the guard is dropped. None where the server is drained by now, or
    /// lighter than the call needs: it may have been chosen by a snapshot of before.
    pub(crate) fn begin(self: &Arc<Self>, least: u32) -> Option<InFlight> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let counted = InFlight(self.clone());
        let open = !self.draining.load(Ordering::SeqCst);
        let heavy_enough = least == 0 || self.weight.load(Ordering::SeqCst) >= least;
        (open && heavy_enough).then_some(counted)
    }

    /// Waits until nothing is in flight, or the server gets calls again.
    pub(crate) async fn drained(&self) -> Drained {
        loop {
            let woken = self.idle.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !self.draining.load(Ordering::SeqCst) {
                return Drained::Undrained;
            }
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return Drained::Idle;
            }
            woken.await;
        }
    }
}

/// One call in flight: counted until dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<ServerState>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let before = self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.0.draining.load(Ordering::SeqCst) {
            self.0.idle.notify_waiters();
        }
    }
}
