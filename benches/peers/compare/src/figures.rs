//! What was found, as it is kept in a file between measuring and reporting.

use std::collections::BTreeMap;

use peers_load::Summary;
use serde::{Deserialize, Serialize};

/// One run of everything.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) machine: BTreeMap<String, String>,
    pub(crate) quick: bool,
    pub(crate) seconds: f64,
    /// What building and installing took before.
    #[serde(default)]
    pub(crate) before_seconds: u64,
    pub(crate) peers: Vec<PeerFigures>,
}

/// Of one peer. What could not be measured is not there.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct PeerFigures {
    pub(crate) name: String,
    pub(crate) version: String,
    /// `default` or `with cache`; nothing where there is no peer.
    #[serde(default)]
    pub(crate) configuration: String,
    pub(crate) setup: String,
    /// Why there are no figures, or why they end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<String>,
    #[serde(default)]
    pub(crate) lost: Vec<Lost>,
    #[serde(default)]
    pub(crate) memory: Option<Memory>,
    #[serde(default)]
    pub(crate) changed: Vec<Changed>,
    #[serde(default)]
    pub(crate) stampede: Option<Stampede>,
    #[serde(default)]
    pub(crate) neighbours: Vec<Neighbours>,
    #[serde(default)]
    pub(crate) hints: Option<Hints>,
    #[serde(default)]
    pub(crate) recovery: Option<Recovery>,
    #[serde(default)]
    pub(crate) start_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) speed: Vec<Speed>,
}

/// Replies lost after the tool had run, in one way, of one kind of tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lost {
    pub(crate) way: String,
    pub(crate) tool: String,
    pub(crate) writes: bool,
    pub(crate) intended: u64,
    pub(crate) executed: u64,
    /// Executions beyond the first of each intended call.
    pub(crate) extra: u64,
    /// Intended calls that were never executed.
    pub(crate) never: u64,
    /// Calls whose caller was notified of a failure.
    pub(crate) errors: u64,
    pub(crate) slowest_seconds: f64,
}

/// What a cache makes of writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Reads after an acknowledged write.
    pub(crate) reads: u64,
    /// Those that showed what was there before it.
    pub(crate) stale: u64,
    pub(crate) writes: u64,
    /// Writes that were acknowledged and never executed.
    pub(crate) swallowed: u64,
    pub(crate) errors: u64,
}

/// Answers about state that another client changed, in one way, or that belongs to one client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) way: String,
    /// Answers that could be right or wrong. If there were no calls, the way does not apply to the
    /// peer.
    pub(crate) answers: u64,
    pub(crate) wrong: u64,
    /// Calls that were not answered, and writes that were not acknowledged.
    pub(crate) errors: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stampede {
    pub(crate) callers: u64,
    pub(crate) executed: u64,
    pub(crate) errors: u64,
    pub(crate) slowest_seconds: f64,
}

/// One tool fails always, in one way; another is well.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Neighbours {
    pub(crate) way: String,
    pub(crate) healthy_calls: u64,
    /// Calls of the healthy tool that did not get its answer.
    pub(crate) blocked: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hints {
    /// Hints of all tools of the upstream.
    pub(crate) declared: u64,
    /// Those that are there through the peer, with the same value.
    pub(crate) kept: u64,
    /// Hints through the peer that the upstream does not declare, or not so.
    pub(crate) changed: u64,
    pub(crate) missing_tools: u64,
}

/// The upstream is killed, and is back after a second.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Recovery {
    /// From then to the first answer; none within the time given.
    pub(crate) first_answer_seconds: Option<f64>,
    pub(crate) waited_seconds: f64,
    /// Calls of new callers afterwards, and how many failed.
    pub(crate) afterwards: u64,
    pub(crate) errors_afterwards: u64,
}

/// One cell of the speed table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Speed {
    pub(crate) callers: usize,
    pub(crate) cached: bool,
    /// Share of calls that reached no upstream.
    pub(crate) hits: f64,
    pub(crate) summary: Summary,
}
