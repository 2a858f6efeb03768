//! Why a call failed, and how far it got.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ServerId;

mod history;
mod outcome;

pub use history::FailedAttempt;
pub use outcome::OutcomeUnknown;

/// How far a failed call got. Together with the tool's plan this decides whether it may be repeated;
/// [`ErrorKind`] alone never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a call was not sent, was answered, or nobody knows"
)]
pub enum Delivery {
    /// The server replied. A reply that reports a fault is no promise that nothing happened.
    Answered,
    /// The call certainly never reached the server.
    NotSent,
    /// The call was sent, at least in part, and no reply came: it may have run, or still run.
    Unknown,
}

impl Delivery {
    /// Returns the word used in spans and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NotSent => "not_sent",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

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

/// Why a call failed. One type for every layer; clones share the cause.
///
/// A tool's own failure (`isError: true`) is not a `ToolError`: it is an answer.
///
/// ```
/// use tollgate_core::{Delivery, ErrorKind, ToolError};
///
/// let error = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s");
/// assert_eq!(error.to_string(), "no answer within 5s (timeout, delivery unknown)");
/// assert!(error.kind().blames_server());
/// ```
#[derive(Clone)]
pub struct ToolError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    delivery: Delivery,
    message: Cow<'static, str>,
    server: Option<ServerId>,
    code: Option<i64>,
    data: Option<Bytes>,
    retry_after: Option<Duration>,
    attempts: u32,
    history: Option<Arc<[FailedAttempt]>>,
    outcome: Option<Arc<OutcomeUnknown>>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// States a failure. The message starts in lower case, ends without a full stop, and says what
    /// was wrong, with which value, and what to do.
    #[must_use]
    pub fn new(kind: ErrorKind, delivery: Delivery, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            delivery,
            message: message.into(),
            server: None,
            code: None,
            data: None,
            retry_after: None,
            attempts: 0,
            history: None,
            outcome: None,
            source: None,
        }))
    }

    /// Adds the server that failed.
    #[must_use]
    pub fn with_server(mut self, server: ServerId) -> Self {
        self.0.server = Some(server);
        self
    }

    /// Adds the code the server answered with: JSON-RPC, or the HTTP status where there was no
    /// JSON-RPC answer.
    #[must_use]
    pub fn with_code(mut self, code: i64) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Adds the `data` member of a JSON-RPC error, as raw JSON.
    #[must_use]
    pub fn with_data(mut self, data: Bytes) -> Self {
        self.0.data = Some(data);
        self
    }

    /// Adds the time the server asked to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Adds the cause. It is kept as the source and not written into the message.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// States how far the call got, where more is known than when the error was made.
    #[must_use]
    pub fn with_delivery(mut self, delivery: Delivery) -> Self {
        self.0.delivery = delivery;
        self
    }

    /// States how many attempts were made in all.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// Adds all attempts of the call, the last one included, in their order.
    #[must_use]
    pub fn with_history(mut self, attempts: Vec<FailedAttempt>) -> Self {
        self.0.history = (!attempts.is_empty()).then(|| attempts.into());
        self
    }

    /// Adds what is known of a call that may have had an effect.
    #[must_use]
    pub fn with_outcome(mut self, known: OutcomeUnknown) -> Self {
        self.0.outcome = Some(Arc::new(known));
        self
    }

    /// Turns the failure of a call that was sent and not answered into
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown), keeping itself as the source.
    #[must_use]
    pub fn into_outcome_unknown(self, known: OutcomeUnknown) -> Self {
        self.into_kind(ErrorKind::OutcomeUnknown, known.message())
            .with_outcome(known)
    }

    /// Turns the error into another kind, keeping itself as the source and everything else as it was.
    #[must_use]
    pub fn into_kind(self, kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let mut inner = (*self.0).clone();
        inner.kind = kind;
        inner.message = message.into();
        inner.source = Some(Arc::new(self));
        Self(Box::new(inner))
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns how far the call got.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.0.delivery
    }

    /// Returns the message without kind and delivery.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the server that failed, if one was chosen.
    #[must_use]
    pub fn server(&self) -> Option<&ServerId> {
        self.0.server.as_ref()
    }

    /// Returns the code the server answered with.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.0.code
    }

    /// The code that a client of ours sees where a failure has no JSON-RPC code of its own.
    pub const RUNTIME_CODE: i64 = -32010;

    /// Returns the JSON-RPC code that a client of ours sees: that of a server that answered with one,
    /// -32602 where nobody offers the tool, and else [`RUNTIME_CODE`](Self::RUNTIME_CODE).
    #[must_use]
    pub fn rpc_code(&self) -> i64 {
        // HTTP statuses are positive: they mean nothing to a JSON-RPC client. And an unknown outcome is
        // our own verdict, whatever was answered
        let told = self.code().filter(|code| *code <= -32000);
        match told.filter(|_| self.outcome().is_none()) {
            Some(code) => code,
            None if self.kind() == ErrorKind::UnknownTool => -32602,
            None => Self::RUNTIME_CODE,
        }
    }

    /// Returns the raw `data` member of a JSON-RPC error.
    #[must_use]
    pub fn data(&self) -> Option<&Bytes> {
        self.0.data.as_ref()
    }

    /// Returns the time the server asked to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns how many attempts were made in all; 0 where nobody counted.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns all attempts of the call, in their order, the last one included. Empty where there
    /// was one attempt only, which the error itself tells of.
    #[must_use]
    pub fn history(&self) -> &[FailedAttempt] {
        self.0.history.as_deref().unwrap_or_default()
    }

    /// Returns what is known of a write that may have run: of one whose [outcome is
    /// unknown](ErrorKind::OutcomeUnknown), and of one that was repeated, which is safe, and failed
    /// all the same.
    #[must_use]
    pub fn outcome(&self) -> Option<&OutcomeUnknown> {
        self.0.outcome.as_deref()
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.0.kind)
            .field("delivery", &self.0.delivery)
            .field("message", &self.0.message)
            .field("server", &self.0.server)
            .field("code", &self.0.code)
            .field("retry_after", &self.0.retry_after)
            .field("attempts", &self.0.attempts)
            .field("history", &self.history())
            .field("outcome", &self.0.outcome)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, delivery {}",
            self.0.message, self.0.kind, self.0.delivery
        )?;
        if let Some(server) = &self.0.server {
            write!(f, ", server {server}")?;
        }
        if let Some(code) = self.0.code {
            write!(f, ", code {code}")?;
        }
        if self.0.attempts > 1 {
            write!(f, ", {} attempts", self.0.attempts)?;
        }
        for (place, attempt) in self.history().iter().enumerate() {
            write!(f, "{} {attempt}", if place == 0 { ":" } else { "," })?;
        }
        f.write_str(")")
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}
