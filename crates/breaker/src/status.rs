//! What operators see of a breaker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{ServerId, ToolName};

use crate::{Subject, WindowStatus};

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// The connection to the server is lost. It is passed over where another can be asked.
    Disconnected,
    /// An operator lets all calls pass; nothing is counted.
    ForcedClosed,
    /// An operator refuses all calls.
    ForcedOpen,
    /// A few calls pass as probes.
    HalfOpen,
    /// Calls are refused.
    Open,
}

impl BreakerState {
    /// Returns `true` if an operator holds it.
    #[must_use]
    pub const fn is_forced(self) -> bool {
        matches!(self, Self::ForcedClosed | Self::ForcedOpen)
    }

    /// Returns the word used in spans, metrics and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Disconnected => "disconnected",
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
    /// What of the server it is for.
    pub subject: Subject,
    /// Whose instance of the server it is for: a principal, with the beginning of the session's id
    /// after a slash if it is a session's. `None` where all callers share the server.
    pub instance: Option<String>,
    /// The state. An open breaker whose time has come is still open until a call probes it.
    pub state: BreakerState,
    /// Failures in a row while closed; 0 in every other state.
    pub failures: u32,
    /// The calls of its window while closed. `None` if no share of calls opens it.
    pub window: Option<WindowStatus>,
    /// Why it opened last, if it ever did.
    pub last_trip: Option<Arc<str>>,
    /// How often it opened since it was made, from closed or half-open.
    pub opened: u64,
    /// How often it closed again: a probe succeeded, or the server's connection is new.
    pub closed: u64,
    /// How many calls it refused.
    pub refused: u64,
    /// How long until a probe is admitted; zero if the next call would be one. `None` while
    /// closed or forced.
    pub time_to_probe: Option<Duration>,
}

impl BreakerStatus {
    /// Returns the tool, if the breaker is for one.
    #[must_use]
    pub const fn tool(&self) -> Option<&ToolName> {
        self.subject.tool()
    }

    /// Returns `true` if nothing is lost with the breaker.
    pub(crate) fn is_empty(&self) -> bool {
        let counted = self.window.is_some_and(|window| window.calls > 0);
        self.state == BreakerState::Closed
            && self.failures == 0
            && !counted
            && (self.opened, self.closed, self.refused) == (0, 0, 0)
    }
}
