//! Why a call failed, and how far it got.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

use crate::{Authorization, BoxFuture, ServerId, Trail};

mod history;
mod kind;
mod limit;
mod outcome;

pub use history::FailedAttempt;
pub use kind::ErrorKind;
pub use limit::LimitReached;
pub use outcome::OutcomeUnknown;

words! {
    /// How far a failed call got. Together with the tool's plan this decides whether it may be
    /// repeated; [`ErrorKind`] alone never does.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Delivery {
        /// The server replied. A reply that reports a fault does not mean that nothing happened.
        Answered = "answered",
        /// The call certainly never reached the server.
        NotSent = "not_sent",
        /// The call was sent, at least in part, and no reply came: it may have run, or still run.
        Unknown = "unknown",
    }
}

impl Delivery {
    /// Reads how far a call got from the code and the `data` of an error, if they are those of
    /// another instance of this runtime: [`ToolError::RUNTIME_CODE`], and the word as `delivery`.
    pub fn told_by_peer(code: i64, data: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Data {
            delivery: Delivery,
        }
        if code != ToolError::RUNTIME_CODE {
            return None;
        }
        let stated: Data = serde_json::from_slice(data).ok()?;
        Some(stated.delivery)
    }
}

/// Why a call failed. One type for every layer; clones share the cause.
///
/// A tool's own failure (`isError: true`) is not a `ToolError`: it is an answer.
///
/// ```
/// use callward_core::{Delivery, ErrorKind, ToolError};
///
/// let error = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s");
/// assert_eq!(error.to_string(), "no answer within 5s (timeout, delivery unknown)");
/// assert!(error.kind.blames_server());
/// ```
#[derive(Debug, Clone)]
pub struct ToolError(Box<ErrorDetails>);

/// What is known of a failed call: read, and added to, through its [`ToolError`].
#[derive(Clone)]
#[non_exhaustive]
pub struct ErrorDetails {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// How far the call got.
    pub delivery: Delivery,
    /// What happened, without kind and delivery.
    pub message: Cow<'static, str>,
    /// The server that failed, if one was chosen.
    pub server: Option<ServerId>,
    /// The code the server answered with.
    pub code: Option<i64>,
    /// The time after which the server permits a retry.
    pub retry_after: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// The HTTP status of an answer that was not a success, whatever its body said.
    pub http_status: Option<u16>,
    /// The raw `data` member of a JSON-RPC error.
    pub data: Option<Bytes>,
    /// When to retry at the gate that refused the call, or at a server that could not be reached.
    /// With it, the stated time is the latest.
    pub reopening: Option<Reopening>,
    /// How many attempts were made in all; 0 if attempts were not counted.
    pub attempts: u32,
    /// All attempts of the call, in their order, the last one included. Empty where there was one
    /// attempt only, except for a write that may have run although its server reports a fault.
    pub history: Arc<[FailedAttempt]>,
    /// What is known of a write that may have run: of one whose [outcome is
    /// unknown](ErrorKind::OutcomeUnknown), and of one that was repeated, which is safe, and failed
    /// all the same.
    pub outcome: Option<Arc<OutcomeUnknown>>,
    /// The scopes to ask for, of a call that was refused for lack of one: those that it needs, and
    /// those that the credential has and is to keep.
    pub scopes: Vec<&'static str>,
    /// The limit of its principal that refused the call.
    pub limit: Option<LimitReached>,
    /// The rule that refused the call. Clients do not see it.
    pub authorization: Option<Arc<Authorization>>,
    /// Everything that was decided about the call, for a client that asked.
    pub trail: Option<Arc<Trail>>,
}

/// The moment at which a gate of ours that refused a call is worth asking again, where it may come
/// before the time that the [refusal states](ErrorDetails::retry_after): a breaker waits for the
/// outcome of a probe, say, and states when it would do without. Or the moment at which an
/// unreachable server is back, if it is restarted.
///
/// A function that waits for it: at once if it was after the refusal and is over. What it returns
/// may be dropped, and it may be called by any number of callers. This is not a promise: the gate,
/// or the server, is asked as usual and may refuse again.
pub type Reopening = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Deref for ToolError {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        &self.0
    }
}

impl DerefMut for ToolError {
    fn deref_mut(&mut self) -> &mut ErrorDetails {
        &mut self.0
    }
}

impl ToolError {
    /// Creates an error. The message starts in lower case, ends without a full stop, and says what
    /// was wrong, with which value, and what to do.
    pub fn new(kind: ErrorKind, delivery: Delivery, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(ErrorDetails {
            kind,
            delivery,
            message: message.into(),
            server: None,
            code: None,
            http_status: None,
            data: None,
            retry_after: None,
            reopening: None,
            attempts: 0,
            history: Arc::default(),
            outcome: None,
            scopes: Vec::new(),
            limit: None,
            authorization: None,
            trail: None,
            source: None,
        }))
    }

    /// Creates the error for a name that no tool has. It shows 200 characters of the name at most,
    /// as a client may send any, and ends with the hint.
    #[expect(
        clippy::use_self,
        reason = "a test reads how far calls get off such places"
    )]
    pub fn unknown_tool(name: &str, hint: impl fmt::Display) -> Self {
        let (end, more) = match name.char_indices().nth(200) {
            Some((end, _)) => (end, "…"),
            None => (name.len(), ""),
        };
        let name = name.get(..end).unwrap_or_default();
        // a colon would make a name such as `get_secret` look like that of a secret
        let text = format!("no tool {name:?}{more}; {hint}");
        ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, text)
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

    /// Adds the HTTP status of an answer that was not a success, whatever its body said.
    #[must_use]
    pub fn with_http_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// Adds the `data` member of a JSON-RPC error, as raw JSON.
    #[must_use]
    pub fn with_data(mut self, data: Bytes) -> Self {
        self.0.data = Some(data);
        self
    }

    /// Adds the time after which the server permits a retry.
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

    /// Turns the failure of a call that was sent and not answered into
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown), keeping itself as the source.
    #[must_use]
    pub fn into_outcome_unknown(self, known: OutcomeUnknown) -> Self {
        let mut error = self.into_kind(ErrorKind::OutcomeUnknown, known.message());
        error.outcome = Some(Arc::new(known));
        error
    }

    /// Leaves out the tool to check with, for a caller who may not know of it.
    #[must_use]
    pub fn without_verifier(mut self) -> Self {
        if let Some(outcome) = &mut self.0.outcome
            && outcome.verify_with.is_some()
        {
            Arc::make_mut(outcome).verify_with = None;
            self.0.message = OutcomeUnknown::without_check(&self.0.message).into();
        }
        self
    }

    /// Turns the error into another kind, keeping itself as the source and everything else as it
    /// was.
    #[must_use]
    pub fn into_kind(self, kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let mut inner = (*self.0).clone();
        inner.kind = kind;
        inner.message = message.into();
        inner.source = Some(Arc::new(self));
        Self(Box::new(inner))
    }

    /// Returns what the error of another instance of this runtime, asked as a server,
    /// [says](Delivery::told_by_peer) of how far the call got.
    pub fn peer_delivery(&self) -> Option<Delivery> {
        Delivery::told_by_peer(self.code?, self.data.as_ref()?)
    }

    /// Returns `true` if a call that is not read-only may have had an effect, or may still have it.
    ///
    /// A server that answers with a fault may have run the call, whatever the fault is and whatever
    /// its `data` says: only the codes that are given before a call is looked at, and the one that
    /// asks for a URL to be opened first (-32042), say that it did not.
    pub fn may_have_run(&self) -> bool {
        match self.delivery {
            Delivery::NotSent => false,
            Delivery::Unknown => true,
            Delivery::Answered => !matches!(
                (self.http_status, self.code),
                (Some(401 | 403 | 429), _) | (None, Some(-32600 | -32601 | -32042))
            ),
        }
    }

    /// Returns `true` if another instance of this runtime, asked as a server, [lists several
    /// attempts](FailedAttempt::told_by_peer): it retries on its own, so another retry would
    /// multiply them.
    pub fn was_retried_by_peer(&self) -> bool {
        let data = self.data.as_deref().unwrap_or_default();
        FailedAttempt::told_by_peer(data) > 1
    }

    /// The code that a client sees for a failure of the runtime's own. It is outside of the range
    /// from -32768 to -32000, which JSON-RPC and MCP reserve, and cannot be an HTTP status.
    pub const RUNTIME_CODE: i64 = -33010;

    /// Returns the JSON-RPC code that the server answered with, if it did and the code fits into
    /// 32 bits, as many clients expect. A code from 100 to 599 is an HTTP status.
    pub fn reported_code(&self) -> Option<i64> {
        let is_rpc = |code: &i64| i32::try_from(*code).is_ok() && !(100..600).contains(code);
        self.code.filter(is_rpc)
    }

    /// Returns the JSON-RPC code that a client sees: that of a server that answered with one,
    /// -32602 if no server offers the tool or the call is malformed, and otherwise
    /// [`RUNTIME_CODE`](Self::RUNTIME_CODE).
    pub fn rpc_code(&self) -> i64 {
        // an unknown outcome is our own verdict, independent of the answer
        let reported = self.reported_code().filter(|_| self.outcome.is_none());
        reported.unwrap_or(match (self.kind, self.delivery) {
            (ErrorKind::UnknownTool, _) | (ErrorKind::InvalidCall, Delivery::NotSent) => -32602,
            _ => Self::RUNTIME_CODE,
        })
    }
}

impl fmt::Debug for ErrorDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.kind)
            .field("delivery", &self.delivery)
            .field("message", &self.message)
            .field("server", &self.server)
            .field("code", &self.code)
            .field("history", &self.history)
            .field("outcome", &self.outcome)
            .field("source", &self.source)
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
        let several = Some(&*self.history).filter(|history| history.len() > 1);
        for (place, attempt) in several.unwrap_or_default().iter().enumerate() {
            write!(f, "{} {attempt}", if place == 0 { ":" } else { "," })?;
        }
        f.write_str(")")
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
