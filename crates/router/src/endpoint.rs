//! One server of a replica set, as a strategy sees it.

use std::fmt;
use std::sync::Arc;

use callward_core::{ServerId, ToolCall, Weight};
use tokio::time::Instant;

use crate::affinity::rendezvous::{Candidate, server_digest};
use crate::health::{
    Doubt, HealthStatus, Presence, Risk, SetHealth, Start, Ticket, Verdict, Witness,
};
use crate::state::{InFlight, ServerState};
use crate::unfit::Unfit;

pub(crate) type Gate = dyn Fn(&ToolCall) -> Result<(), Unfit> + Send + Sync;

/// One server of a replica set: what the operator says of it, and what is counted for it.
///
/// Clones share what is counted. So do endpoints of the same server id when a set is updated.
///
/// One cache line: a choice among thousands meets servers that nobody has looked at lately, and waits
/// for each line of them that it reads.
#[derive(Clone)]
#[repr(align(64))]
pub struct Endpoint {
    server: ServerId,
    weight: Weight,
    /// Its place in the order that servers were given in.
    given: u32,
    gate: Option<Arc<Gate>>,
    state: Arc<ServerState>,
    /// The health of its set, once it is in one.
    set: Option<Arc<SetHealth>>,
    about: Arc<About>,
}

/// What most choices do not ask of a server.
#[derive(Clone)]
struct About {
    /// What stands for it where keys are ranked.
    digest: u64,
    categories: Box<[Box<str>]>,
    capabilities: Box<[Box<str>]>,
    zone: Option<Arc<str>>,
    cost_factor: f64,
}

const _: () = assert!(size_of::<Endpoint>() <= 64, "an endpoint is one cache line");

impl Endpoint {
    pub(crate) fn new(server: ServerId) -> Self {
        Self {
            about: Arc::new(About {
                digest: server_digest(&server),
                categories: Box::default(),
                capabilities: Box::default(),
                zone: None,
                cost_factor: 1.0,
            }),
            server,
            weight: Weight::DEFAULT,
            given: 0,
            gate: None,
            state: Arc::default(),
            set: None,
        }
    }

    pub(crate) fn set_weight(&mut self, weight: Weight) {
        self.weight = weight;
    }

    pub(crate) fn set_categories(&mut self, categories: impl Iterator<Item = String>) {
        Arc::make_mut(&mut self.about).categories =
            categories.map(String::into_boxed_str).collect();
    }

    pub(crate) fn set_capabilities(&mut self, capabilities: impl Iterator<Item = String>) {
        let about = Arc::make_mut(&mut self.about);
        about.capabilities = capabilities.map(String::into_boxed_str).collect();
    }

    pub(crate) fn set_zone(&mut self, zone: Arc<str>) {
        Arc::make_mut(&mut self.about).zone = Some(zone);
    }

    pub(crate) fn set_cost_factor(&mut self, factor: f64) {
        Arc::make_mut(&mut self.about).cost_factor = factor;
    }

    pub(crate) fn set_given(&mut self, given: u32) {
        self.given = given;
    }

    pub(crate) fn given(&self) -> u32 {
        self.given
    }

    pub(crate) fn set_gate(&mut self, gate: Arc<Gate>) {
        self.gate = Some(gate);
    }

    /// Counts on where another endpoint of the same server stopped.
    pub(crate) fn continue_from(&mut self, previous: &Self) {
        self.state = previous.state.clone();
    }

    pub(crate) fn set_health(&mut self, set: Arc<SetHealth>) {
        self.set = Some(set);
    }

    pub(crate) fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// Returns what it takes part with where keys are ranked.
    pub(crate) fn candidate(&self) -> Candidate {
        Candidate {
            digest: self.about.digest,
            weight: self.weight,
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

    /// Returns the categories.
    #[must_use]
    pub fn categories(&self) -> &[Box<str>] {
        &self.about.categories
    }

    /// Returns the capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &[Box<str>] {
        &self.about.capabilities
    }

    /// Returns where the server stands, if that was said.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.about.zone.as_deref()
    }

    /// Returns what a call costs here, for each unit of the tool's cost.
    #[must_use]
    pub fn cost_factor(&self) -> f64 {
        self.about.cost_factor
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

    /// Says whether the server may get this call, as far as that is its own affair: its weight, a
    /// pin and a budget aside.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: what speaks against it.
    pub fn check(&self, call: &ToolCall) -> Result<(), Unfit> {
        if self.state.is_draining() {
            return Err(Unfit::Draining);
        }
        if let Some(gate) = &self.gate {
            gate(call)?;
        }
        self.check_health(call)
    }

    #[inline]
    fn check_health(&self, call: &ToolCall) -> Result<(), Unfit> {
        let Some(set) = &self.set else {
            return Ok(());
        };
        let risk = Risk::of(call.plan());
        match self.state.health().doubt(risk, set, Instant::now) {
            None => Ok(()),
            Some(Doubt::Ejected) if is_spread(call, set) => Ok(()),
            Some(doubt) => Err(doubt.into()),
        }
    }

    /// Takes note of a call that is about to be sent: how its outcome will count. `None` where
    /// something speaks against that which did not when the server was chosen.
    pub(crate) fn admit(&self, call: &ToolCall, is_doubtful: bool) -> Option<Ticket> {
        let Some(set) = &self.set else {
            return Some(Ticket::Extra);
        };
        let risk = Risk::of(call.plan());
        match self.state.health().admit(risk, set, Instant::now) {
            Ok(ticket) => Some(ticket),
            Err(_) if is_doubtful || is_spread(call, set) => Some(Ticket::Extra),
            Err(_) => None,
        }
    }

    /// Counts the outcome of a call for the server's health.
    pub(crate) fn settle(&self, call: &mut InFlight, verdict: Verdict) {
        if let Some(set) = &self.set {
            set.tell(&self.server, call.settle(verdict, set));
        }
    }

    /// Takes note that somebody says the server is there, or is not.
    pub(crate) fn witness(&self, who: Witness, presence: Presence) {
        if let Some(set) = &self.set {
            let health = self.state.health();
            set.tell(
                &self.server,
                health.witness(who, presence, set, Instant::now()),
            );
        }
    }

    /// Counts its health in its set from now on.
    pub(crate) fn join(&self, start: Start) {
        if let Some(set) = &self.set {
            self.state.health().join(set, start, Instant::now());
        }
    }

    /// Ends that.
    pub(crate) fn leave(&self) {
        self.state.health().leave();
    }

    /// Returns what is known of the server's health; nothing before it is in a set.
    #[must_use]
    pub fn health(&self) -> Option<HealthStatus> {
        let set = self.set.as_ref()?;
        Some(self.state.health().status(set, Instant::now()))
    }

    /// Returns the part of its share of calls that the server is to get: above 0, and 1 but for a
    /// while after it joined or came back.
    #[must_use]
    #[inline]
    pub fn share(&self) -> f64 {
        match &self.set {
            Some(set) => self.state.health().share(set, Instant::now),
            None => 1.0,
        }
    }

    /// Says whether the server is in one of these categories.
    pub(crate) fn is_in(&self, categories: &[&'static str]) -> bool {
        let mut own = self.categories().iter().map(|own| &**own);
        own.any(|own| categories.contains(&own))
    }
}

/// Says whether so few servers of a set are fit that calls like this go to ejected ones, too.
fn is_spread(call: &ToolCall, set: &SetHealth) -> bool {
    !call.plan().is_write() && call.plan().route.min_weight.is_none() && set.panics()
}

impl From<Doubt> for Unfit {
    fn from(doubt: Doubt) -> Self {
        match doubt {
            Doubt::Ejected => Self::Ejected,
            Doubt::HeldDown => Self::HeldDown,
            Doubt::Unreachable => Self::Unreachable,
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &self.server)
            .field("weight", &self.weight)
            .field("categories", &self.categories())
            .field("capabilities", &self.capabilities())
            .field("zone", &self.zone())
            .field("draining", &self.is_draining())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
