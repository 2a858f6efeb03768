//! One call on its way to a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::refine::Applied;
use crate::{CallPlan, CallRecord, Caller, ChosenServer, IdempotencyKey, ServerId, Share, Tool};

/// One call of one tool: what every layer receives.
///
/// Cheap to clone: pointers and counts, no data.
#[derive(Clone)]
pub struct ToolCall {
    tool: Arc<Tool>,
    arguments: Bytes,
    applied: Applied,
    caller: Arc<Caller>,
    deadline: Option<Instant>,
    trace: Option<Arc<TraceContext>>,
    progress: Option<Arc<dyn ProgressSink>>,
    record: Option<Arc<CallRecord>>,
    attempt: Attempt,
    purpose: Purpose,
    idempotency_key: Option<IdempotencyKey>,
}

impl ToolCall {
    /// Starts a call. `arguments` is the raw JSON object, sent as it is; empty stands for `{}`.
    ///
    /// Here the tool's rules over arguments are applied, if it has any: the plan is known from the
    /// first layer on, and cannot change any more.
    #[must_use]
    pub fn new(tool: Arc<Tool>, arguments: impl Into<Bytes>) -> Self {
        let arguments = arguments.into();
        let applied = tool.refinements().apply(or_empty(&arguments));
        Self {
            tool,
            arguments,
            applied,
            caller: Caller::local(),
            deadline: None,
            trace: None,
            progress: None,
            record: None,
            attempt: Attempt::first(),
            purpose: Purpose::Caller,
            idempotency_key: None,
        }
    }

    /// Makes the same call once more, for the runtime's own sake: the same tool, arguments and
    /// caller, but nobody who waits for it. So it has no deadline, reports no progress, writes into no
    /// record, begins with its first attempt, and is another call to whoever tells calls by their
    /// idempotency key.
    #[must_use]
    pub fn in_background(&self, purpose: Purpose) -> Self {
        Self {
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            applied: self.applied,
            caller: self.caller.clone(),
            deadline: None,
            trace: self.trace.clone(),
            progress: None,
            record: None,
            attempt: Attempt::first(),
            purpose,
            idempotency_key: None,
        }
    }

    /// Names who calls. Default: [`Caller::local`].
    #[must_use]
    pub fn with_caller(mut self, caller: Arc<Caller>) -> Self {
        self.caller = caller;
        self
    }

    /// Sets when the whole call must be over, repeats and pauses included. Default: never.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Adds the trace context to continue.
    #[must_use]
    pub fn with_trace(mut self, trace: Arc<TraceContext>) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Adds where progress reports of the server go.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<dyn ProgressSink>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Adds a record for the layers to write their decisions into.
    #[must_use]
    pub fn with_record(mut self, record: Arc<CallRecord>) -> Self {
        self.record = Some(record);
        self
    }

    /// Names the call to servers that run what they get twice only once. Default: whoever makes
    /// attempts of the call gives it a key of its own.
    ///
    /// Give one to make a call again that an earlier process may have made: with the same key, it is
    /// the same call. Two calls that are both meant need two keys.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// Gives the call a key of its own if it has none. Whoever makes several attempts of a call does
    /// so before the first: all of them then carry the same one.
    pub fn ensure_idempotency_key(&mut self) {
        if self.idempotency_key.is_none() {
            self.idempotency_key = Some(IdempotencyKey::unique());
        }
    }

    /// Returns the tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// Returns the call's plan, the only thing a layer decides by: the tool's own, or what a rule
    /// over the arguments makes of it.
    #[must_use]
    pub fn plan(&self) -> &CallPlan {
        self.tool.plan_applied(self.applied)
    }

    /// Returns which of the tool's plans that is.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.applied
    }

    /// Returns the raw JSON arguments; `{}` where none were given.
    #[must_use]
    pub fn arguments(&self) -> &[u8] {
        or_empty(&self.arguments)
    }

    /// Returns the raw JSON arguments as [`arguments`](Self::arguments) does, for whoever needs them
    /// longer than the call. Nothing is copied.
    #[must_use]
    pub fn arguments_bytes(&self) -> Bytes {
        if self.arguments.is_empty() {
            return Bytes::from_static(or_empty(b""));
        }
        self.arguments.clone()
    }

    /// Returns who calls.
    #[must_use]
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Returns when the whole call must be over.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the trace context to continue.
    #[must_use]
    pub fn trace(&self) -> Option<&Arc<TraceContext>> {
        self.trace.as_ref()
    }

    /// Returns where progress reports go.
    #[must_use]
    pub fn progress(&self) -> Option<&Arc<dyn ProgressSink>> {
        self.progress.as_ref()
    }

    /// Returns the record to write decisions into, if anybody reads it.
    #[must_use]
    pub fn record(&self) -> Option<&Arc<CallRecord>> {
        self.record.as_ref()
    }

    /// Returns what names the call to servers, the same over all its attempts. `None` until
    /// somebody gave it a key: the caller, or the layer that makes its attempts.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }

    /// Returns what the call is made for.
    #[must_use]
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns which attempt this is.
    #[must_use]
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Returns which attempt this is, to change it. Only a retry layer does.
    pub fn attempt_mut(&mut self) -> &mut Attempt {
        &mut self.attempt
    }
}

fn or_empty(arguments: &[u8]) -> &[u8] {
    if arguments.is_empty() {
        b"{}"
    } else {
        arguments
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // arguments may be secret: only their size is shown
        f.debug_struct("ToolCall")
            .field("set", self.tool.set())
            .field("tool", self.tool.name())
            .field("argument_bytes", &self.arguments.len())
            .field("applied", &self.applied)
            .field("caller", &self.caller)
            .field("deadline", &self.deadline)
            .field("attempt", &self.attempt)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

/// What a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Purpose {
    /// Somebody wants the answer.
    #[default]
    Caller,
    /// A cache fetches a new answer in the place of its callers, who have an old one.
    Refresh,
    /// A cache looks whether an answer it gave is still right. Nobody would miss the call.
    Verify,
}

impl Purpose {
    /// Says whether the runtime makes the call by itself. Such a call is not repeated: its failure is
    /// nobody's.
    #[must_use]
    pub const fn is_background(self) -> bool {
        !matches!(self, Self::Caller)
    }

    /// Says whether the call is load that its callers would not have caused. Such a call is paid for
    /// like a repeat.
    #[must_use]
    pub const fn is_extra(self) -> bool {
        matches!(self, Self::Verify)
    }

    /// Returns the word used in events and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Refresh => "refresh",
            Self::Verify => "verify",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which attempt of a call this is, and which servers to try last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    /// Servers that already failed this call: to be tried only if there is no other.
    pub avoid: SmallVec<[ServerId; 2]>,
    /// How long this attempt may take of the time to the call's deadline, if another one would
    /// follow. `None`: the call's deadline alone counts.
    pub share: Option<Share>,
    /// Only servers that are not avoided, are healthy and have a weight: a second attempt that runs
    /// beside the first. If there is none, the attempt fails at once, not sent.
    pub elsewhere_only: bool,
    /// Where to write which server gets this attempt, if somebody needs to know while it runs.
    pub chosen: Option<ChosenServer>,
}

impl Attempt {
    /// Returns the first attempt.
    #[must_use]
    pub fn first() -> Self {
        Self {
            number: 1,
            avoid: SmallVec::new(),
            share: None,
            elsewhere_only: false,
            chosen: None,
        }
    }

    /// Turns this attempt into the next one, avoiding the server that failed.
    pub fn advance(&mut self, failed: Option<&ServerId>) {
        self.number = self.number.saturating_add(1);
        self.share = None;
        self.elsewhere_only = false;
        self.chosen = None;
        if let Some(failed) = failed
            && !self.avoid.contains(failed)
        {
            self.avoid.push(failed.clone());
        }
    }
}

/// W3C trace context, as it travels in `_meta`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceContext {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`.
    pub state: Option<String>,
}

impl TraceContext {
    /// Takes the two header values. Neither is checked: whoever reads them does.
    #[must_use]
    pub fn new(parent: impl Into<String>, state: Option<String>) -> Self {
        Self {
            parent: parent.into(),
            state,
        }
    }
}

/// Where progress reports of a running call go.
///
/// Called from the connection's reading task: it must neither block nor panic.
pub trait ProgressSink: Send + Sync {
    /// Takes one report: the raw JSON `params` of the server's `notifications/progress`, with the
    /// server's own token still in it.
    fn report(&self, params: &[u8]);

    /// Takes that the call begins, or ceases, to wait for a person: for a confirmation, say, or for an
    /// answer to a question. Such time counts against no timeout. Default: nobody cares.
    fn waits_for_person(&self, waits: bool) {
        let _ = waits;
    }
}
