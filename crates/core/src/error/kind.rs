//! What kinds of failure there are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The breaker of this server and tool is open.
    BreakerOpen,
    /// The caller went away.
    Cancelled,
    /// No connection could be made.
    ConnectFailed,
    /// The connection broke after the call was sent, or while it was.
    ConnectionLost,
    /// The call's own deadline passed.
    DeadlineExceeded,
    /// A fault of this runtime.
    Internal,
    /// The server refused the call as malformed: the caller's fault.
    InvalidCall,
    /// No server may take this call: none healthy, or none heavy enough for a destructive one.
    NoEligibleServer,
    /// An unsafe call was sent and not answered. It may have run; it was not repeated.
    OutcomeUnknown,
    /// Too many calls are waiting or running.
    Overloaded,
    /// The server's answer was not what the protocol allows.
    Protocol,
    /// The server, or our own limiter, asked for fewer calls.
    RateLimited,
    /// The server reported a fault of its own.
    ServerFault,
    /// One attempt took longer than its timeout.
    Timeout,
    /// The server wants other credentials.
    Unauthorized,
    /// Nobody offers a tool of this name.
    UnknownTool,
}

impl ErrorKind {
    /// Returns the word used in spans, metrics and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BreakerOpen => "breaker_open",
            Self::Cancelled => "cancelled",
            Self::ConnectFailed => "connect_failed",
            Self::ConnectionLost => "connection_lost",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Internal => "internal",
            Self::InvalidCall => "invalid_call",
            Self::NoEligibleServer => "no_eligible_server",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Overloaded => "overloaded",
            Self::Protocol => "protocol",
            Self::RateLimited => "rate_limited",
            Self::ServerFault => "server_fault",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::UnknownTool => "unknown_tool",
        }
    }

    /// Says whether such a failure is evidence that the server is sick.
    ///
    /// Never: the caller's faults, backpressure, cancellation, and the runtime's own refusals.
    #[must_use]
    pub const fn blames_server(self) -> bool {
        matches!(
            self,
            Self::ConnectFailed
                | Self::ConnectionLost
                | Self::Protocol
                | Self::ServerFault
                | Self::Timeout
        )
    }

    /// Says whether such a failure may pass by itself, so that a repeat could succeed.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::BreakerOpen
                | Self::ConnectFailed
                | Self::ConnectionLost
                | Self::Overloaded
                | Self::Protocol
                | Self::RateLimited
                | Self::ServerFault
                | Self::Timeout
        )
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
