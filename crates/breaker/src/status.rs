//! What a breaker is for, what operators see of it, and why it refuses a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Owner, Principal, ServerId, SessionId, ToolName, words};

use crate::WindowStatus;

/// How much of a session's id is shown: enough to tell it from others, too little to use.
const SHOWN_SESSION_CHARS: usize = 8;

/// What of a server a breaker is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// The whole server: all its tools.
    Server,
    /// The listing of its tools.
    Discovery,
    /// One tool.
    Tool(ToolName),
}

impl Subject {
    /// Returns the tool, if it is one.
    #[must_use]
    pub const fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::Tool(name) => Some(name),
            Self::Server | Self::Discovery => None,
        }
    }

    /// Returns the word used in metrics and tables.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Discovery => "discovery",
            Self::Tool(_) => "tool",
        }
    }
}

impl From<&ToolName> for Subject {
    fn from(tool: &ToolName) -> Self {
        Self::Tool(tool.clone())
    }
}

/// The key of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) server: ServerId,
    pub(crate) subject: Subject,
    /// Whose instance of the server; `None` where all callers share it.
    pub(crate) owner: Option<(Principal, Option<SessionId>)>,
}

impl Key {
    pub(crate) fn new(server: &ServerId, subject: &Subject, owner: Option<Owner<'_>>) -> Self {
        let owned = |owner: Owner<'_>| (owner.principal.clone(), owner.session.cloned());
        Self {
            server: server.clone(),
            subject: subject.clone(),
            owner: owner.map(owned),
        }
    }

    pub(crate) fn is_of(&self, owner: Owner<'_>) -> bool {
        let own = self.owner.as_ref();
        own.is_some_and(|own| (&own.0, own.1.as_ref()) == (owner.principal, owner.session))
    }

    /// Returns the principal, with the beginning of the session's id after a slash.
    pub(crate) fn instance(&self) -> Option<String> {
        let (principal, session) = self.owner.as_ref()?;
        let Some(session) = session else {
            return Some(principal.to_string());
        };
        let shown: String = session.as_str().chars().take(SHOWN_SESSION_CHARS).collect();
        Some(format!("{principal}/{shown}"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Server => write!(f, "{}", self.server)?,
            Subject::Discovery => write!(f, "{}, its list of tools", self.server)?,
            Subject::Tool(tool) => write!(f, "{}::{tool}", self.server)?,
        }
        f.write_str(self.owner.as_ref().map_or("", |_| ", one instance"))
    }
}

words! {
    /// The state of a breaker.
    #[non_exhaustive]
    BreakerState {
        /// Calls pass.
        Closed = "closed",
        /// The connection to the server is lost. It is passed over where another can be asked.
        Disconnected = "disconnected",
        /// An operator lets all calls pass; nothing is counted.
        ForcedClosed = "forced_closed",
        /// An operator refuses all calls.
        ForcedOpen = "forced_open",
        /// A few calls pass as probes.
        HalfOpen = "half_open",
        /// Calls are refused.
        Open = "open",
    }
}

impl BreakerState {
    /// Returns `true` if an operator holds it.
    #[must_use]
    pub const fn is_forced(self) -> bool {
        matches!(self, Self::ForcedClosed | Self::ForcedOpen)
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
    /// Returns `true` if nothing is lost with the breaker.
    pub(crate) fn is_empty(&self) -> bool {
        let counts = (self.failures, self.opened, self.closed, self.refused);
        self.state == BreakerState::Closed
            && counts == (0, 0, 0, 0)
            && self.window.is_none_or(|window| window.calls == 0)
    }
}

/// Why a breaker refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub(crate) state: BreakerState,
    pub(crate) last_trip: Option<Arc<str>>,
    /// Until a probe is admitted at the latest; `None` while an operator holds the breaker open.
    /// Where only a write was held back: until a write may be the probe.
    pub(crate) time_to_probe: Option<Duration>,
    pub(crate) is_write_held: bool,
}

impl Rejection {
    /// Returns when it is worth asking again: while a probe is in flight, soon.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let is_probed = self.state == BreakerState::HalfOpen && !self.is_write_held;
        let longest = if is_probed { PROBE_WAIT } else { Duration::MAX };
        Some(self.time_to_probe?.min(longest))
    }

    /// Returns why the call was refused, without the server's own words.
    pub(crate) const fn why(&self) -> &'static str {
        match self.state {
            BreakerState::ForcedOpen => "an operator holds its breaker open",
            _ if self.is_write_held => "its breaker is due for a probe, and this call is a write",
            BreakerState::HalfOpen => "its breaker is waiting for the outcome of a probe",
            _ => "its breaker is open",
        }
    }
}

/// How long a caller waits for the outcome of a probe before it asks again.
const PROBE_WAIT: Duration = Duration::from_secs(1);

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())?;
        if let Some(reason) = &self.last_trip {
            write!(f, " (opened after {reason})")?;
        }
        let Some(wait) = self.time_to_probe.map(|wait| wait.as_secs_f64()) else {
            return Ok(());
        };
        let (next, unless) = match self.is_write_held {
            true => ("admitted", ", or as soon as a safe call succeeds"),
            false => ("next probe", ""),
        };
        write!(f, "; {next} in {wait:.1} s{unless}")
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_names_what_of_a_server_its_breaker_is_for() {
        let server = ServerId::new("shop").unwrap();
        let tool = ToolName::new("get_order").unwrap();
        for (subject, expected) in [
            (Subject::Server, "shop"),
            (Subject::Discovery, "shop, its list of tools"),
            (Subject::Tool(tool), "shop::get_order"),
        ] {
            assert_eq!(Key::new(&server, &subject, None).to_string(), expected);
        }
    }
}
