//! The stages that a call passes, and the verdicts of each.

words! {
    /// The stage that decided: a position in the stack, from outside to inside.
    #[non_exhaustive]
    Stage {
        /// The effect of the call, by the tool's hints and the rules over its arguments.
        Plan = "plan",
        /// Whether a person must confirm first.
        Confirm = "confirm",
        /// Whether the call leaves a record.
        Audit = "audit",
        /// Whether the rules let the caller make the call.
        Authorize = "authorize",
        /// Whether the guardrails of the operator let the call pass, and what they look at.
        Guardrail = "guardrail",
        /// Whether a call that keeps failing is answered in its server's place.
        LoopGuard = "loop_guard",
        /// Whether the answer comes from the cache, and what the call does to it.
        Cache = "cache",
        /// Whether a failed call is sent again.
        Retry = "retry",
        /// Whether a slow read is sent to a second server.
        Hedge = "hedge",
        /// The limits of rate and concurrency.
        Limit = "limit",
        /// Which server gets an attempt.
        Route = "route",
        /// Whether a circuit breaker refuses the call.
        Breaker = "breaker",
        /// How long an attempt may take.
        Timeout = "timeout",
        /// How one attempt ended.
        Attempt = "attempt",
        /// What the caller got.
        Answer = "answer",
    }
}

words! {
    /// The verdict of a stage, in one word. [`Stage::verdicts`] lists those of each stage.
    #[non_exhaustive]
    Verdict {
        /// The call changes nothing.
        ReadOnly = "read_only",
        /// A second identical call changes nothing more.
        Idempotent = "idempotent",
        /// Each call changes something.
        Mutating = "mutating",
        /// The call may destroy or overwrite.
        Destructive = "destructive",
        /// No person is asked.
        Skip = "skip",
        /// A person must confirm first.
        Ask = "ask",
        /// The plan asks for a record of tool, time and outcome.
        Partial = "partial",
        /// The plan asks for a full record.
        Full = "full",
        /// A record was left.
        Written = "written",
        /// A record was due, but the queue was full.
        Dropped = "dropped",
        /// The cache is not asked.
        Bypass = "bypass",
        /// A read that is looked up: whether an answer is there is found out then.
        LookUp = "look_up",
        /// Answered from the cache.
        Hit = "hit",
        /// Answered by an identical call that already ran.
        Joined = "joined",
        /// Looked up and not found.
        Miss = "miss",
        /// A write: what it may have changed is dropped.
        Invalidated = "invalidated",
        /// Answered from the cache beyond the answer's lifetime.
        Stale = "stale",
        /// Failures are counted.
        Watch = "watch",
        /// Answered.
        Answered = "answered",
        /// Sent again whenever the failure may pass.
        Safe = "safe",
        /// Sent again only when it certainly was not sent.
        OnlyUnsent = "only_unsent",
        /// Never.
        Never = "never",
        /// It is sent again.
        Retry = "retry",
        /// It is not sent again.
        Stop = "stop",
        /// A second attempt, if the first is slow.
        IfSlow = "if_slow",
        /// A second attempt was sent beside the first.
        Sent = "sent",
        /// The second attempt answered first.
        Won = "won",
        /// Held to a limit, if it is reached.
        AtMost = "at_most",
        /// Made to wait.
        Waited = "waited",
        /// A guardrail looks at it.
        Checked = "checked",
        /// Refused: nothing was sent.
        Refused = "refused",
        /// A server was chosen.
        Chosen = "chosen",
        /// No server may have it.
        NoServer = "no_server",
        /// Let through.
        Pass = "pass",
        /// Admitted as a probe of a half-open breaker.
        Probe = "probe",
        /// Went on beyond its time because the server reported progress.
        Extended = "extended",
        /// Ended: its time was over.
        Ended = "ended",
        /// The tool itself reported failure, which is an answer.
        ToolError = "tool_error",
        /// Failed.
        Failed = "failed",
        /// Given up by the caller.
        Cancelled = "cancelled",
    }
}

impl Stage {
    /// Returns the words this stage uses: no others appear in its decisions.
    pub const fn verdicts(self) -> &'static [Verdict] {
        use Verdict as V;
        match self {
            Self::Plan => &[V::ReadOnly, V::Idempotent, V::Mutating, V::Destructive],
            Self::Confirm => &[V::Skip, V::Ask, V::Pass, V::Refused],
            Self::Audit => &[V::Partial, V::Full, V::Written, V::Dropped],
            Self::Authorize => &[V::Pass, V::Ask, V::Refused],
            Self::Guardrail => &[V::Checked, V::Refused],
            Self::Cache => &[
                V::Bypass,
                V::LookUp,
                V::Hit,
                V::Joined,
                V::Miss,
                V::Invalidated,
                V::Stale,
            ],
            Self::LoopGuard => &[V::Watch, V::Answered],
            Self::Retry => &[V::Safe, V::OnlyUnsent, V::Never, V::Retry, V::Stop],
            Self::Hedge => &[V::IfSlow, V::Never, V::Sent, V::Won, V::Skip],
            Self::Limit => &[V::AtMost, V::Waited, V::Refused],
            Self::Route => &[V::Chosen, V::NoServer],
            Self::Breaker => &[V::Pass, V::Probe, V::Refused],
            Self::Timeout => &[V::AtMost, V::Extended, V::Ended, V::Refused],
            Self::Attempt => &[V::Answered, V::Failed, V::Cancelled],
            Self::Answer => &[V::Answered, V::ToolError, V::Failed, V::Cancelled],
        }
    }
}
