//! One server of a replica set: its settings, and what is counted for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{ServerId, ToolCall, Weight};

use crate::affinity::rendezvous::{Candidate, server_digest};
use crate::rule::ExclusionReason;
use crate::state::ServerState;

pub(crate) type Gate = dyn Fn(&ToolCall) -> Result<(), ExclusionReason> + Send + Sync;

/// One server of a replica set: its settings, and what is counted for it.
///
/// Clones share the counts. So do endpoints of the same server id when a set is updated.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) server: ServerId,
    /// Its part in rankings.
    digest: u64,
    pub(crate) weight: Weight,
    /// Its place in the order in which the servers were added.
    pub(crate) added: usize,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) state: Arc<ServerState>,
    /// Its categories.
    pub categories: Arc<[Box<str>]>,
    /// What it can do that others of its set cannot.
    pub capabilities: Arc<[Box<str>]>,
    /// Its zone, if one was set.
    pub zone: Option<Arc<str>>,
    /// What a call costs here, per unit of the tool's cost.
    pub cost_factor: f64,
}

impl Endpoint {
    pub(crate) fn new(server: ServerId) -> Self {
        Self {
            digest: server_digest(&server),
            server,
            weight: Weight::PRIMARY,
            added: 0,
            gate: None,
            state: Arc::default(),
            categories: Arc::default(),
            capabilities: Arc::default(),
            zone: None,
            cost_factor: 1.0,
        }
    }

    /// Returns the server's id.
    #[must_use]
    pub fn server(&self) -> &ServerId {
        &self.server
    }

    /// Returns the weight.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Returns how many calls are in flight at this server.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state.in_flight()
    }

    /// Returns how long a call takes here: a mean in which the latest calls count most and peaks
    /// count at once. `None` if none has ended lately.
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        let estimate = self.state.estimate();
        (estimate.trust > 0.0).then(|| Duration::from_nanos(estimate.nanos as u64))
    }

    /// Returns `true` if the server gets no new calls.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.state.is_draining()
    }

    /// Checks whether the server may get this call, its weight, a pin and a budget aside.
    ///
    /// # Errors
    ///
    /// [`ExclusionReason`]: what speaks against it.
    pub fn check(&self, call: &ToolCall) -> Result<(), ExclusionReason> {
        if self.state.is_draining() {
            return Err(ExclusionReason::Draining);
        }
        self.gate.as_ref().map_or(Ok(()), |gate| gate(call))
    }

    pub(crate) const fn candidate(&self) -> Candidate {
        Candidate {
            digest: self.digest,
            weight: self.weight,
        }
    }

    /// Returns `true` if the server is in one of these categories.
    pub(crate) fn is_in(&self, categories: &[&'static str]) -> bool {
        let mut own = self.categories.iter();
        own.any(|own| categories.contains(&&**own))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &self.server)
            .field("weight", &self.weight)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
