//! One server of a replica set, as a strategy sees it.

use std::fmt;
use std::sync::Arc;

use tollgate_core::{ServerId, ToolCall, Weight};

use crate::state::ServerState;
use crate::unfit::Unfit;

pub(crate) type Gate = dyn Fn(&ToolCall) -> Result<(), Unfit> + Send + Sync;

/// One server of a replica set: what the operator says of it, and what is counted for it.
///
/// Clones share what is counted. So do endpoints of the same server id when a set is updated.
#[derive(Clone)]
pub struct Endpoint {
    server: ServerId,
    weight: Weight,
    categories: Arc<[Box<str>]>,
    capabilities: Arc<[Box<str>]>,
    zone: Option<Arc<str>>,
    cost_factor: f64,
    gate: Option<Arc<Gate>>,
    state: Arc<ServerState>,
}

impl Endpoint {
    pub(crate) fn new(server: ServerId) -> Self {
        Self {
            server,
            weight: Weight::DEFAULT,
            categories: Arc::default(),
            capabilities: Arc::default(),
            zone: None,
            cost_factor: 1.0,
            gate: None,
            state: Arc::default(),
        }
    }

    pub(crate) fn set_weight(&mut self, weight: Weight) {
        self.weight = weight;
    }

    pub(crate) fn set_categories(&mut self, categories: impl Iterator<Item = String>) {
        self.categories = categories.map(String::into_boxed_str).collect();
    }

    pub(crate) fn set_capabilities(&mut self, capabilities: impl Iterator<Item = String>) {
        self.capabilities = capabilities.map(String::into_boxed_str).collect();
    }

    pub(crate) fn set_zone(&mut self, zone: Arc<str>) {
        self.zone = Some(zone);
    }

    pub(crate) fn set_cost_factor(&mut self, factor: f64) {
        self.cost_factor = factor;
    }

    pub(crate) fn set_gate(&mut self, gate: Arc<Gate>) {
        self.gate = Some(gate);
    }

    /// Counts on where another endpoint of the same server stopped.
    pub(crate) fn continue_from(&mut self, previous: &Self) {
        self.state = previous.state.clone();
    }

    pub(crate) fn state(&self) -> &Arc<ServerState> {
        &self.state
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

    /// Returns the categories.
    #[must_use]
    pub fn categories(&self) -> &[Box<str>] {
        &self.categories
    }

    /// Returns the capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &[Box<str>] {
        &self.capabilities
    }

    /// Returns where the server stands, if that was said.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// Returns what a call costs here, for each unit of the tool's cost.
    #[must_use]
    pub fn cost_factor(&self) -> f64 {
        self.cost_factor
    }

    /// Returns how many calls the router has given to this server that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state.in_flight()
    }

    /// Says whether the server gets no new calls.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.state.is_draining()
    }

    /// Says whether the server may get this call, its weight aside.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: what speaks against it.
    pub fn check(&self, call: &ToolCall) -> Result<(), Unfit> {
        if self.state.is_draining() {
            return Err(Unfit::Draining);
        }
        match &self.gate {
            Some(gate) => gate(call),
            None => Ok(()),
        }
    }

    /// Says whether the server is in one of these categories.
    pub(crate) fn is_in(&self, categories: &[&'static str]) -> bool {
        let mut own = self.categories.iter().map(|own| &**own);
        own.any(|own| categories.contains(&own))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &self.server)
            .field("weight", &self.weight)
            .field("categories", &self.categories)
            .field("capabilities", &self.capabilities)
            .field("zone", &self.zone)
            .field("draining", &self.is_draining())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
