//! One call on its way to a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::idempotency::MadeKey;
use crate::refine::Applied;
use crate::trail::Decision;
use crate::{
    Attempt, Baggage, CallPlan, CallRecord, Caller, IdempotencyKey, Inbound, Owner, ProgressSink,
    ServerId, Tool, TraceContext,
};

words! {
    /// What a call is made for.
    #[non_exhaustive]
    Purpose {
        /// A caller waits for the answer.
        Caller = "caller",
        /// The cache refreshes an answer that its callers already have.
        Refresh = "refresh",
    } default Caller
}

impl Purpose {
    /// Returns `true` if the runtime makes the call by itself. Such a call is not retried: no
    /// caller sees its failure.
    pub const fn is_background(self) -> bool {
        !matches!(self, Self::Caller)
    }
}

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
    record: Option<Arc<CallRecord>>,
    purpose: Purpose,
    is_left_out: bool,
    deadline: Option<Instant>,
    /// The caller's own; it comes before one that was made.
    given_key: Option<IdempotencyKey>,
    /// `None` is [`Attempt::first`]: most calls have no other.
    attempt: Option<Box<Attempt>>,
    pin: Option<ServerId>,
    inbound: Option<Arc<Inbound>>,
    trace: Option<Arc<TraceContext>>,
    id: Option<Box<str>>,
    baggage: Option<Baggage>,
    cost_budget: Option<f64>,
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
            purpose: Purpose::Caller,
            is_left_out: false,
            record: None,
            deadline: None,
            given_key: None,
            attempt: None,
            pin: None,
            inbound: None,
            trace: None,
            id: None,
            baggage: None,
            cost_budget: None,
        };
        Self {
            parts: Arc::new(parts),
            own: None,
        }
    }

    /// Makes the same call once more for the runtime itself: the same tool, arguments and caller,
    /// but no caller waits for the answer. So it has no deadline, reports no progress, writes to no
    /// record, starts with its first attempt, and does not share the idempotency key.
    pub fn in_background(&self, purpose: Purpose) -> Self {
        let parts = Parts {
            purpose,
            record: None,
            deadline: None,
            attempt: None,
            given_key: None,
            ..Parts::clone(&self.parts)
        };
        Self {
            parts: Arc::new(parts),
            own: None,
        }
    }

    /// Returns the parts for changes: a copy if another clone of the call exists.
    fn parts_mut(&mut self) -> &mut Parts {
        Arc::make_mut(&mut self.parts)
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
        self.parts_mut().deadline = Some(deadline);
        self
    }

    /// Adds the trace context to continue.
    pub fn with_trace(mut self, trace: Arc<TraceContext>) -> Self {
        self.parts_mut().trace = Some(trace);
        self
    }

    /// Adds the caller's baggage, for servers.
    pub fn with_baggage(mut self, baggage: Baggage) -> Self {
        self.parts_mut().baggage = Some(baggage);
        self
    }

    /// Adds the MCP request that the call came as. Default: none.
    pub fn with_inbound(mut self, inbound: Arc<Inbound>) -> Self {
        self.parts_mut().inbound = Some(inbound);
        self
    }

    /// Sets the model's name of the call, for spans. Default: none.
    pub fn with_id(mut self, id: impl Into<Box<str>>) -> Self {
        self.parts_mut().id = Some(id.into());
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
        self.parts_mut().pin = Some(server);
        self
    }

    /// Sets what each attempt of the call may cost at most, in the units of `costHint`: servers
    /// where it would cost more are not candidates. A tool that states no cost fits any budget; a
    /// budget below 0, or NaN, counts as 0. Default: the router's own budget. If both are set, the
    /// lower one applies.
    pub fn with_cost_budget(mut self, budget: f64) -> Self {
        // NaN is not a maximum
        self.parts_mut().cost_budget = Some(budget.max(0.0));
        self
    }

    /// Adds where progress reports of the server go.
    pub fn with_progress(mut self, progress: Arc<dyn ProgressSink>) -> Self {
        self.own_mut().progress = Some(progress);
        self
    }

    /// Adds a record for the layers to write their decisions into.
    pub fn with_record(mut self, record: Arc<CallRecord>) -> Self {
        self.parts_mut().record = Some(record);
        self
    }

    /// Returns the record of the call, which `new` starts if there is none.
    pub fn ensure_record(&mut self, new: impl FnOnce() -> CallRecord) -> Arc<CallRecord> {
        match self.record() {
            Some(record) => record.clone(),
            None => self.parts_mut().record.insert(Arc::new(new())).clone(),
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

    /// Returns the hints that the plan was derived from, for display. No layer decides by them.
    pub fn annotations_shown(&self) -> impl fmt::Display {
        &self
            .parts
            .tool
            .resolved_applied(self.parts.applied)
            .annotations
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

    /// Returns when the whole call must be over.
    pub fn deadline(&self) -> Option<Instant> {
        self.parts.deadline
    }

    /// Returns the trace context to continue.
    pub fn trace(&self) -> Option<&Arc<TraceContext>> {
        self.parts.trace.as_ref()
    }

    /// Leaves the call out of the trace: no layer makes a span for it, and the trace context sent
    /// to servers is marked as not sampled.
    pub fn leave_out(&mut self) {
        self.parts_mut().is_left_out = true;
    }

    /// Returns `true` if the call is left out of the trace.
    pub fn is_left_out(&self) -> bool {
        self.parts.is_left_out
    }

    /// Returns the caller's baggage, for servers.
    pub fn baggage(&self) -> Option<&Baggage> {
        self.parts.baggage.as_ref()
    }

    /// Returns the MCP request that the call came as, if there was one.
    pub fn inbound(&self) -> Option<&Arc<Inbound>> {
        self.parts.inbound.as_ref()
    }

    /// Returns the model's name of the call.
    pub fn id(&self) -> Option<&str> {
        self.parts.id.as_deref()
    }

    /// Returns the only server that may get the call, if there is only one.
    pub fn pin(&self) -> Option<&ServerId> {
        self.parts.pin.as_ref()
    }

    /// Returns what each attempt may cost at most, if the caller set a budget.
    pub fn cost_budget(&self) -> Option<f64> {
        self.parts.cost_budget
    }

    /// Returns where progress reports go.
    pub fn progress(&self) -> Option<&Arc<dyn ProgressSink>> {
        self.own.as_ref()?.progress.as_ref()
    }

    /// Returns the record to write decisions into, if it is read.
    pub fn record(&self) -> Option<&Arc<CallRecord>> {
        self.parts.record.as_ref()
    }

    /// Writes a decision about this attempt into the call's record, if that wants decisions;
    /// otherwise `decision` is not called.
    #[inline]
    pub fn decided(&self, make: impl FnOnce() -> Decision) {
        if let Some(record) = &self.parts.record {
            record.decided(|| make().of_attempt(self.attempt()));
        }
    }

    /// Returns the idempotency key of the call, the same for all its attempts. `None` until the
    /// caller, or the layer that makes its attempts, sets a key.
    pub fn idempotency_key(&self) -> Option<IdempotencyKey> {
        let given = self.parts.given_key.clone();
        given.or_else(|| self.made_key().map(IdempotencyKey::from))
    }

    /// Returns what the call is made for.
    pub fn purpose(&self) -> Purpose {
        self.parts.purpose
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
            .field("deadline", &self.parts.deadline)
            .field("pin", &self.pin())
            .field("attempt", self.attempt())
            .field("purpose", &self.parts.purpose)
            .finish_non_exhaustive()
    }
}
