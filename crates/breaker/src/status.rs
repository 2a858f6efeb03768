//! What operators see of a breaker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{ServerId, ToolName};

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls pass and nothing is counted: an operator said so.
    ForcedClosed,
    /// Calls are refused until an operator says otherwise.
    ForcedOpen,
    /// A few calls pass as probes.
    HalfOpen,
    /// Calls are refused.
    Open,
}

impl BreakerState {
    /// Returns the word used in spans, metrics and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::ForcedClosed => "forced_closed",
            Self::ForcedOpen => "forced_open",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One breaker of a set, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerStatus {
    /// The server.
    pub server: ServerId,
    /// The tool.
    pub tool: ToolName,
    /// The state. An open breaker whose time has come is still open until a call probes it.
    pub state: BreakerState,
    /// Failures in a row while closed; 0 in every other state.
    pub failures: u32,
    /// Why it opened last, if it ever did.
    pub last_trip: Option<Arc<str>>,
    /// How long until a probe is let through; zero if the next call would be one. `None` while
    /// closed or forced.
    pub time_to_probe: Option<Duration>,
}
