//! The servers of a stack: a snapshot that each change replaces.

use std::sync::Arc;

use callward_breaker::{BreakerSet, BreakerState, Subject};
use callward_core::{CallStats, ReplicaSetId, ServerId, Weight};
use callward_limit::{ConcurrencyHandle, RateLimitLayer};
use callward_registry::Catalogue;
use callward_router::Endpoint;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::scan::Liveness;
use crate::server::Server;

/// The servers of a stack at one moment, in the order they were added.
#[derive(Debug, Default)]
pub(crate) struct Roster(Vec<Arc<Known>>);

/// One server as it was added to the stack.
#[derive(Debug)]
pub(crate) struct Known {
    /// As it was added; its weight may have changed since.
    pub(crate) spec: Server,
    /// Its counters in the router.
    pub(crate) endpoint: Endpoint,
    /// The handles that read its limits.
    pub(crate) rate: RateLimitLayer,
    pub(crate) concurrency: ConcurrencyHandle,
    /// Its calls.
    pub(crate) stats: Arc<CallStats>,
    pub(crate) liveness: Arc<watch::Sender<Liveness>>,
    pub(crate) weight: Mutex<Weight>,
    /// What follows the server. It ends with this.
    pub(crate) scan: Option<AbortHandle>,
    /// Asks for a listing of its tools.
    pub(crate) wanted: Arc<Notify>,
}

/// How one server is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The server.
    pub id: ServerId,
    /// Its replica set.
    pub set: ReplicaSetId,
    /// Its weight.
    pub weight: Weight,
    /// Whether its connection was up at the last event.
    pub up: bool,
    /// The state of its breaker.
    pub breaker: BreakerState,
    /// Whether it is drained: see [`Stack::drain`](crate::Stack::drain).
    pub is_draining: bool,
    /// How many calls it was given that have not ended.
    pub in_flight: usize,
    /// How many tools it offers.
    pub tools: usize,
    /// Why it is not there, or what is wrong with its last list.
    pub last_error: Option<String>,
    /// The outcomes of the listings of its tools.
    pub listings: Listings,
}

/// The listings of a server's tools, by outcome. A listing that was abandoned, because the
/// connection was lost, counts as neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Listings {
    /// Those that succeeded.
    pub listed: u64,
    /// Those that failed.
    pub failed: u64,
}

impl ServerStatus {
    /// Returns the state in a word: `draining`, `healthy`, `unreachable`, or that of its breaker.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match self.breaker {
            _ if self.is_draining => "draining",
            // it has not answered yet, or its connection is lost
            BreakerState::Closed if !self.up => "unreachable",
            breaker => state_word(breaker),
        }
    }
}

/// Returns the word for the state of a breaker, as that of what it is for.
pub(crate) const fn state_word(breaker: BreakerState) -> &'static str {
    match breaker {
        BreakerState::Closed => "healthy",
        BreakerState::Disconnected => "unreachable",
        other => other.as_str(),
    }
}

impl Roster {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Known> {
        self.0.iter().map(|known| &**known)
    }

    pub(crate) fn specs(&self) -> impl Iterator<Item = &Server> {
        self.all().map(|known| &known.spec)
    }

    pub(crate) fn find(&self, server: &ServerId) -> Option<&Known> {
        self.all().find(|known| known.id() == server)
    }

    pub(crate) fn get(&self, server: &ServerId) -> Option<Arc<Known>> {
        self.0.iter().find(|known| known.id() == server).cloned()
    }

    /// Returns the roster with some more at its end.
    pub(crate) fn with(&self, more: impl IntoIterator<Item = Known>) -> Self {
        let more = more.into_iter().map(Arc::new);
        Self(self.0.iter().cloned().chain(more).collect())
    }

    /// Returns the roster without one, and that one.
    pub(crate) fn without(&self, server: &ServerId) -> Option<(Arc<Known>, Self)> {
        let mut rest = self.0.clone();
        let place = rest.iter().position(|known| known.id() == server)?;
        let gone = rest.remove(place);
        Some((gone, Self(rest)))
    }
}

impl Known {
    pub(crate) fn id(&self) -> &ServerId {
        self.spec.id()
    }

    pub(crate) fn status(&self, catalogue: &Catalogue, breakers: &BreakerSet) -> ServerStatus {
        let liveness = self.liveness.borrow().clone();
        ServerStatus {
            id: self.id().clone(),
            set: self.spec.set.clone(),
            weight: *self.weight.lock(),
            up: liveness.up,
            breaker: breakers.circuit(self.id(), Subject::Server).state(),
            is_draining: self.endpoint.is_draining(),
            in_flight: self.endpoint.in_flight(),
            tools: catalogue.offered_by(self.id()),
            last_error: liveness.last_error,
            listings: liveness.listings,
        }
    }

    /// Stops following the server: later lists are ignored.
    pub(crate) fn leave(&self) {
        let is_gone = self.liveness.borrow().is_gone.clone();
        *is_gone.lock() = true;
        self.stop();
    }

    /// Stops following the server; nothing waits for its first list any more.
    pub(crate) fn stop(&self) {
        if let Some(scan) = &self.scan {
            scan.abort();
        }
        self.liveness.send_modify(|now| now.is_settled = true);
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.stop();
    }
}
