//! The kinds of failure.

words! {
    /// The kind of failure.
    #[non_exhaustive]
    ErrorKind {
        /// The breaker of this server and tool is open.
        BreakerOpen = "breaker_open",
        /// The caller went away.
        Cancelled = "cancelled",
        /// No connection could be made.
        ConnectFailed = "connect_failed",
        /// The connection broke while or after the call was sent.
        ConnectionLost = "connection_lost",
        /// The call's own deadline passed.
        DeadlineExceeded = "deadline_exceeded",
        /// The caller's credential lacks a scope that the call needs.
        InsufficientScope = "insufficient_scope",
        /// A fault of this runtime.
        Internal = "internal",
        /// The call is malformed: the caller's fault.
        InvalidCall = "invalid_call",
        /// No server may take the call: none is healthy, or heavy enough for its effect.
        NoEligibleServer = "no_eligible_server",
        /// A write was sent and not answered: it may have run.
        OutcomeUnknown = "outcome_unknown",
        /// Too many calls wait or run, or none are taken now.
        Overloaded = "overloaded",
        /// The server's answer was not what the protocol allows.
        Protocol = "protocol",
        /// The server, or our own limiter, asked for fewer calls.
        RateLimited = "rate_limited",
        /// The server reported a fault of its own.
        ServerFault = "server_fault",
        /// The server answered that it does not know the session of the call. It may have run all
        /// the same.
        SessionLost = "session_lost",
        /// One attempt took longer than its timeout.
        Timeout = "timeout",
        /// The answer exceeds the limit for one message; the call has run.
        TooLarge = "too_large",
        /// The server wants other credentials, or a rule or webhook refuses the call.
        Unauthorized = "unauthorized",
        /// No server offers a tool of this name.
        UnknownTool = "unknown_tool",
    }
}

impl ErrorKind {
    /// Returns `true` if such a failure is evidence that the server is unhealthy.
    ///
    /// Never: the caller's faults, backpressure, cancellation, and the runtime's own refusals.
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

    /// Returns `true` if such a failure is transient, so that a retry could succeed.
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
                | Self::SessionLost
                | Self::Timeout
        )
    }
}
