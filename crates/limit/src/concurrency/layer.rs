//! The settings of the layer.

use std::collections::HashMap;

use callward_core::ToolName;
use serde::{Deserialize, Serialize};

/// Which call a full queue refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a queue has two ends")]
pub enum Shed {
    /// The call that arrives. The default.
    #[default]
    Newest,
    /// The call that has waited longest: under lasting overload its caller is the likeliest to have
    /// given up, and the newest the likeliest to be answered in time.
    Oldest,
}

/// Puts a [`ConcurrencyLimit`](super::ConcurrencyLimit) around a service. Each service it wraps
/// gets a limit of its own.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConcurrencyLimitLayer {
    /// How many calls are in flight at most, at least 1.
    pub max_in_flight: usize,
    /// How many calls may wait, for the server and for each tool with a limit of its own; 0 refuses
    /// each call that finds no free permit. Default: 1000.
    pub max_waiting: usize,
    /// Which call a full queue refuses. Default: the newest.
    pub shed: Shed,
    /// How many calls of each tool are in flight at most, at least 1. Default: as many as of the
    /// server.
    pub per_tool: Option<usize>,
    /// The same of single tools, in place of [`per_tool`](Self::per_tool). Default: none.
    pub tools: HashMap<ToolName, usize>,
}

impl ConcurrencyLimitLayer {
    /// How many calls are in flight at most by default.
    pub const DEFAULT_MAX_IN_FLIGHT: usize = 64;
    /// How many calls may wait by default.
    pub const DEFAULT_MAX_WAITING: usize = 1000;

    /// Allows this many calls in flight, at least 1. Up to 1000 more wait.
    #[must_use]
    pub fn new(max_in_flight: usize) -> Self {
        Self {
            max_in_flight,
            max_waiting: Self::DEFAULT_MAX_WAITING,
            shed: Shed::Newest,
            per_tool: None,
            tools: HashMap::new(),
        }
    }
}

impl Default for ConcurrencyLimitLayer {
    /// 64 calls in flight, 1000 waiting.
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_IN_FLIGHT)
    }
}
