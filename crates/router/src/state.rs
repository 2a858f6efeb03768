//! What is counted for one server, whatever snapshots of its set come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What is counted for one server: shared by all snapshots that have it, by its id.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    in_flight: AtomicUsize,
    draining: AtomicBool,
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
    }

    /// Counts one call until the guard is dropped; none where the server is drained meanwhile.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<InFlight> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let counted = InFlight(self.clone());
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
