//! One call on its way to a tool.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::idempotency::MadeKey;
use crate::refine::Applied;
use crate::trail::Decision;
use crate::{
    Ask, Attempt, Baggage, CallClient, CallMeta, CallPlan, CallRecord, Caller, ClientCapabilities,
    IdempotencyKey, Inbound, Owner, ProgressSink, Round, ServerId, Tool, TraceContext,
};

/// One call of one tool: what every layer receives.
///
/// A call is two words long, so it passes from layer to layer in registers and is cheap to clone.
/// What a layer sets is written in place if no other clone exists, and into a copy otherwise: a
/// clone never changes.
#[must_use]
#[derive(Clone)]
pub struct ToolCall {
    parts: Arc<Parts>,
    /// Apart from the rest: nearly every call that is sent gets it, and another clone of the call
    /// needs no copy of the rest for that.
    own: Option<Box<Own>>,
}

/// The order of the fields puts what a cached answer reads into two cache lines.
#[derive(Clone)]
#[repr(C)]
struct Parts {
    tool: Arc<Tool>,
    arguments: Bytes,
    /// `None` is [`Caller::local`], whose count all threads would write to.
    caller: Option<Arc<Caller>>,
    applied: Applied,
    context: CallContext,
    /// The caller's own; it comes before one that was made.
    given_key: Option<IdempotencyKey>,
    /// `None` is [`Attempt::first`]: most calls have no other.
    attempt: Option<Box<Attempt>>,
}

/// What is known of a call besides its tool and its arguments.
#[derive(Debug, Clone, Default)]
#[repr(C)]
#[non_exhaustive]
pub struct CallContext {
    /// Where the layers write their decisions, if it is read.
    pub record: Option<Arc<CallRecord>>,
    /// The runtime makes the call by itself. It is not retried, as no caller sees its failure.
    pub is_background: bool,
    /// The call is left out of the trace: no layer makes a span for it, and the trace context sent
    /// to servers is marked as not sampled.
    pub is_left_out: bool,
    /// When the whole call must be over.
    pub deadline: Option<Instant>,
    /// What the caller's `_meta` has for the server. Calls with another one are other calls.
    pub meta: Option<Arc<CallMeta>>,
    /// The client, if servers may ask it something meanwhile.
    pub client: Option<CallClient>,
    /// What the client declares, also where it cannot be asked. Servers may answer by it.
    pub capabilities: ClientCapabilities,
    /// The client understands a result that asks it to call again (2026-07-28).
    pub takes_rounds: bool,
    /// The rule that says that a person must approve the call, if one does.
    pub ask: Option<Arc<Ask>>,
    /// The answers that a further round of the call brings, if it is one.
    pub round: Option<Arc<Round>>,
    /// The only server that may get the call, if there is only one.
    pub pin: Option<ServerId>,
    /// The MCP request that the call came as, if there was one.
    pub inbound: Option<Arc<Inbound>>,
    /// The trace context to continue.
    pub trace: Option<Arc<TraceContext>>,
    /// The model's name of the call, for spans.
    pub id: Option<Box<str>>,
    /// The caller's baggage, for servers.
    pub baggage: Option<Baggage>,
    /// What each attempt may cost at most, if the caller set a budget.
    pub cost_budget: Option<f64>,
    /// The name that the caller used for the tool, where a refusal must not tell that it exists.
    pub asked_as: Option<Arc<str>>,
}

impl Deref for ToolCall {
    type Target = CallContext;

    fn deref(&self) -> &CallContext {
        &self.parts.context
    }
}

/// What each attempt has of its own.
#[derive(Clone, Default)]
struct Own {
    progress: Option<Arc<dyn ProgressSink>>,
    made_key: Option<MadeKey>,
}

impl ToolCall {
    /// Starts a call. `arguments` is the raw JSON object, sent as it is; empty stands for `{}`.
    ///
    /// Here the tool's rules over arguments are applied, if it has any: the plan is known from the
    /// first layer on, and cannot change any more.
    pub fn new(tool: Arc<Tool>, arguments: impl Into<Bytes>) -> Self {
        let arguments = arguments.into();
        let applied = tool.refinements.apply(or_empty(&arguments));
        let parts = Parts {
            tool,
            arguments,
            caller: None,
            applied,
            context: CallContext::default(),
            given_key: None,
            attempt: None,
        };
        Self {
            parts: Arc::new(parts),
            own: None,
        }
    }

    /// Makes the same call once more for the runtime itself: the same tool, arguments and caller,
    /// but no caller waits for the answer. So it has no deadline, reports no progress, writes to no
    /// record, starts with its first attempt, and does not share the idempotency key.
    pub fn in_background(&self) -> Self {
        let mut parts = Parts::clone(&self.parts);
        parts.context.is_background = true;
        parts.context.record = None;
        parts.context.deadline = None;
        parts.context.client = None;
        parts.attempt = None;
        parts.given_key = None;
        Self {
            parts: Arc::new(parts),
            own: None,
        }
    }

    /// Replaces the arguments, and with them the plan, if the tool has rules over arguments.
    pub fn with_arguments(mut self, arguments: impl Into<Bytes>) -> Self {
        let parts = self.parts_mut();
        parts.arguments = arguments.into();
        parts.applied = parts.tool.refinements.apply(or_empty(&parts.arguments));
        self
    }

    /// Returns the parts for changes: a copy if another clone of the call exists.
    fn parts_mut(&mut self) -> &mut Parts {
        Arc::make_mut(&mut self.parts)
    }

    /// Returns the context for changes.
    pub fn context_mut(&mut self) -> &mut CallContext {
        &mut self.parts_mut().context
    }

    fn own_mut(&mut self) -> &mut Own {
        self.own.get_or_insert_default()
    }

    fn made_key(&self) -> Option<MadeKey> {
        self.own.as_ref()?.made_key
    }

    /// Sets the caller. Default: [`Caller::local`].
    pub fn with_caller(mut self, caller: Arc<Caller>) -> Self {
        self.parts_mut().caller = Some(caller);
        self
    }

    /// Sets when the whole call must be over, repeats and pauses included. Default: never.
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.context_mut().deadline = Some(deadline);
        self
    }

    /// Sends the call to this server of the tool's replica set and to no other, even if it fails or
    /// is slow. A pin does not override the plan: if the server may not get the call, for example a
    /// destructive call at a server of too little weight, the call fails. Default: the router
    /// chooses.
    ///
    /// A cached answer belongs to no particular server, so a pinned read is sent, and its answer is
    /// not cached either.
    pub fn pinned_to(mut self, server: ServerId) -> Self {
        self.context_mut().pin = Some(server);
        self
    }

    /// Sets what each attempt of the call may cost at most, in the units of `costHint`: servers
    /// where it would cost more are not candidates. A tool that states no cost fits any budget; a
    /// budget below 0, or NaN, counts as 0. Default: the router's own budget. If both are set, the
    /// lower one applies.
    pub fn with_cost_budget(mut self, budget: f64) -> Self {
        // NaN is not a maximum
        self.context_mut().cost_budget = Some(budget.max(0.0));
        self
    }

    /// Adds where progress reports of the server go.
    pub fn with_progress(mut self, progress: Arc<dyn ProgressSink>) -> Self {
        self.own_mut().progress = Some(progress);
        self
    }

    /// Adds a record for the layers to write their decisions into.
    pub fn with_record(mut self, record: Arc<CallRecord>) -> Self {
        self.context_mut().record = Some(record);
        self
    }

    /// Returns the record of the call, which `new` starts if there is none.
    pub fn ensure_record(&mut self, new: impl FnOnce() -> CallRecord) -> Arc<CallRecord> {
        match &self.record {
            Some(record) => record.clone(),
            None => self.context_mut().record.insert(Arc::new(new())).clone(),
        }
    }

    /// Names the call to servers that run a repeated call only once. Default: the layer that makes
    /// the attempts gives the call a key of its own.
    ///
    /// Set it to repeat a call that an earlier process may have made: with the same key, it is the
    /// same call. Two intended calls need two keys.
    pub fn with_idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.parts_mut().given_key = Some(key);
        self
    }

    /// Gives the call a key of its own if it has none. A layer that makes several attempts does so
    /// before the first one, so that all attempts carry the same key.
    pub fn ensure_idempotency_key(&mut self) {
        if self.parts.given_key.is_none() && self.made_key().is_none() {
            self.own_mut().made_key = Some(MadeKey::unique());
        }
    }

    /// Returns the tool.
    pub fn tool(&self) -> &Arc<Tool> {
        &self.parts.tool
    }

    /// Returns the call's plan, the only thing a layer decides by: the tool's own, or what a rule
    /// over the arguments makes of it.
    pub fn plan(&self) -> &CallPlan {
        self.parts.tool.plan_applied(self.parts.applied)
    }

    /// Returns which of the tool's plans applies.
    pub fn applied(&self) -> Applied {
        self.parts.applied
    }

    /// Returns the raw JSON arguments; `{}` where none were given.
    pub fn arguments(&self) -> &[u8] {
        or_empty(&self.parts.arguments)
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Arc<Caller> {
        let caller = self.parts.caller.as_ref();
        caller.unwrap_or_else(|| Caller::local_ref())
    }

    /// Returns whose instance of the server the call goes to; `None` if all callers share one.
    #[inline]
    pub fn owner(&self) -> Option<Owner<'_>> {
        self.parts.tool.instances.owner(self.caller())
    }

    /// Returns `true` if the client was asked something for the call, or answers in a further round
    /// of it: then the result belongs to this call alone, and the call is not repeated.
    pub fn has_asked(&self) -> bool {
        self.round.is_some() || self.client.as_ref().is_some_and(CallClient::was_asked)
    }

    /// Returns where progress reports go.
    pub fn progress(&self) -> Option<&Arc<dyn ProgressSink>> {
        self.own.as_ref()?.progress.as_ref()
    }

    /// Writes a decision about this attempt into the call's record, if that wants decisions;
    /// otherwise `decision` is not called.
    #[inline]
    pub fn decided(&self, make: impl FnOnce() -> Decision) {
        if let Some(record) = &self.record {
            record.decided(|| make().of_attempt(self.attempt()));
        }
    }

    /// Returns a clone if [decisions](Self::decided) are wanted: to write them down when the call
    /// itself has moved on.
    pub fn clone_to_decide(&self) -> Option<Self> {
        let is_wanted = self.record.as_ref()?.wants_decisions();
        is_wanted.then(|| self.clone())
    }

    /// Returns the idempotency key of the call, the same for all its attempts. `None` until the
    /// caller, or the layer that makes its attempts, sets a key.
    pub fn idempotency_key(&self) -> Option<IdempotencyKey> {
        let given = self.parts.given_key.clone();
        given.or_else(|| self.made_key().map(IdempotencyKey::from))
    }

    /// Returns which attempt this is.
    pub fn attempt(&self) -> &Attempt {
        static FIRST: Attempt = Attempt::first();
        self.parts.attempt.as_deref().unwrap_or(&FIRST)
    }

    /// Returns which attempt this is, to change it. Only a retry layer does.
    pub fn attempt_mut(&mut self) -> &mut Attempt {
        self.parts_mut().attempt.get_or_insert_default()
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
            .field("set", self.parts.tool.set())
            .field("tool", self.parts.tool.name())
            .field("argument_bytes", &self.parts.arguments.len())
            .field("applied", &self.parts.applied)
            .field("caller", self.caller())
            .field("deadline", &self.deadline)
            .field("pin", &self.pin)
            .field("attempt", self.attempt())
            .field("is_background", &self.is_background)
            .finish_non_exhaustive()
    }
}
