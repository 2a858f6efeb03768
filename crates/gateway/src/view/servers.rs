//! The servers in numbers, and what an operator makes of them.

use std::collections::HashMap;
use std::time::Duration;

use callward::router::ServerStats;
use callward::{ServerId, ServerStatus, Stack, Weight};
use serde::{Deserialize, Serialize};

use super::InstanceView;

/// One server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerView {
    pub(crate) id: String,
    pub(crate) set: String,
    pub(crate) weight: u32,
    /// `draining`, or the state of its breaker and connection.
    pub(crate) state: String,
    /// Whether its connection is there.
    pub(crate) up: bool,
    /// Calls given to it that have not ended.
    pub(crate) in_flight: usize,
    /// What became of those that ended.
    pub(crate) calls: CallsView,
    /// The share of faults among recent answers and faults.
    #[serde(default)]
    pub(crate) error_rate: Option<f64>,
    /// The same, of all since the gateway started.
    #[serde(default)]
    pub(crate) error_rate_ever: Option<f64>,
    /// How long a call takes, as the default strategy sees it.
    #[serde(default)]
    pub(crate) ewma_ms: Option<f64>,
    /// How long recent answers took.
    #[serde(default)]
    pub(crate) p50_ms: Option<f64>,
    #[serde(default)]
    pub(crate) p99_ms: Option<f64>,
    /// How many tools it offers.
    pub(crate) tools: usize,
    /// Why it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// Its instances, if owners have instances of their own.
    #[serde(default)]
    pub(crate) instances: Vec<InstanceView>,
}

/// What became of a server's calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallsView {
    /// Answered, whatever the answer said.
    pub(crate) answers: u64,
    /// The server failed.
    pub(crate) faults: u64,
    /// Refused at a gate of ours, or by the server, which told to come later.
    pub(crate) refusals: u64,
    /// Given up: nobody waited any more.
    pub(crate) cancelled: u64,
}

impl ServerView {
    /// Describes all servers of a stack, in the order of its config.
    pub(crate) fn all(stack: &Stack) -> Vec<Self> {
        let routes = stack.routes();
        let stats: HashMap<&ServerId, &ServerStats> = routes
            .iter()
            .flat_map(|set| &set.servers)
            .map(|stats| (&stats.server, stats))
            .collect();
        let servers = stack.servers();
        let known = |status: &ServerStatus| {
            let instances = stack.instances(&status.id);
            Some(Self {
                instances: instances.iter().map(InstanceView::of).collect(),
                ..Self::of(status, stats.get(&status.id)?)
            })
        };
        servers.iter().filter_map(known).collect()
    }

    fn of(status: &ServerStatus, stats: &ServerStats) -> Self {
        let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        let totals = &stats.totals;
        Self {
            id: status.id.to_string(),
            set: status.set.to_string(),
            weight: stats.weight,
            state: status.state().to_owned(),
            up: status.up,
            in_flight: stats.in_flight,
            calls: CallsView {
                answers: totals.answers,
                faults: totals.faults,
                refusals: totals.refusals,
                cancelled: totals.cancelled,
            },
            error_rate: stats.error_rate,
            error_rate_ever: stats.error_rate_ever,
            ewma_ms: millis(stats.ewma),
            p50_ms: millis(stats.latency.p50),
            p99_ms: millis(stats.latency.p99),
            tools: status.tools,
            last_error: status.last_error.clone(),
            instances: Vec::new(),
        }
    }
}

impl CallsView {
    /// Returns how many calls ended, however.
    pub(crate) const fn ended(&self) -> u64 {
        self.answers + self.faults + self.refusals + self.cancelled
    }
}

/// What to do with one server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Give it no new calls.
    Drain,
    /// Give it calls again.
    Undrain,
    /// Let it weigh so much.
    Weigh(Weight),
}

/// The body of an order that says nothing more.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// The body of an order to weigh so much.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewWeight {
    pub(crate) weight: Weight,
}

/// An order was carried out, and this is how the server is now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ordered {
    pub(crate) server: ServerView,
}

impl Order {
    /// Carries it out.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no such server.
    pub(crate) fn act(self, stack: &Stack, server: &str) -> Result<Ordered, String> {
        let servers = stack.servers();
        let unknown = || {
            let known = servers.iter().map(|server| server.id.as_str());
            let hint = crate::similar::hint(server, known, "servers");
            format!("no server {server:?}: {hint}")
        };
        let known = servers.iter().find(|one| one.id.as_str() == server);
        let id = &known.ok_or_else(unknown)?.id;
        let done = match self {
            // who asked looks at the numbers, and nobody waits here
            Self::Drain => stack.drain(id).map(drop),
            Self::Undrain => stack.undrain(id),
            Self::Weigh(weight) => stack.reweigh(id, weight),
        };
        done.map_err(|_gone| unknown())?;
        let now = ServerView::all(stack);
        now.into_iter()
            .find(|view| view.id == server)
            .map(|server| Ordered { server })
            .ok_or_else(unknown)
    }
}
