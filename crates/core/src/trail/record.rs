//! The record of one call on its way through the stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Decision, Stage, Verdict};
use crate::{Attempt, Confirmation, ErrorKind, RouteDecision, ServerId};

words! {
    /// What the cache did with a call.
    #[non_exhaustive]
    CacheStatus {
        /// The cache was not asked, or there is none.
        Bypass = "bypass",
        /// Answered from the cache.
        Hit = "hit",
        /// Waited for an identical call that was already running.
        Joined = "joined",
        /// Looked up, not found; the call ran.
        Miss = "miss",
        /// A write: the call ran, and what it may have changed was dropped.
        Invalidated = "invalidated",
        /// Answered from the cache after the end of the answer's lifetime: while a new one is
        /// fetched, or because the server fails. The answer's `_meta` says so.
        Stale = "stale",
    } default Bypass
}

words! {
    /// The outcome of a second attempt beside the first.
    #[non_exhaustive]
    HedgeStatus {
        /// None was sent.
        None = "none",
        /// It was sent and did not decide the answer: the first attempt did, both failed, or the
        /// call still runs.
        Sent = "sent",
        /// It answered first, and its answer is the call's.
        Won = "won",
    } default None
}

/// One attempt: which server, how it ended, how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "layers that make attempts write it"
)]
pub struct AttemptRecord {
    /// The server that was asked, if one was chosen.
    pub server: Option<ServerId>,
    /// The failure, or `None` for an answer.
    pub error: Option<ErrorKind>,
    /// From the start of the attempt to its end.
    pub took: Duration,
}

impl AttemptRecord {
    fn decision(&self, attempt: &Attempt) -> Decision {
        let (verdict, reason) = match self.error {
            None => (Verdict::Answered, ""),
            Some(ErrorKind::Cancelled) => (Verdict::Cancelled, ""),
            Some(kind) => (Verdict::Failed, kind.as_str()),
        };
        Decision {
            server: self.server.clone(),
            ..Decision::new(Stage::Attempt, verdict, reason)
                .of_attempt(attempt)
                .took(self.took)
        }
    }
}

/// The rule that allowed or refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the layer that decides makes it")]
pub struct Authorization {
    /// The name of the rule, or its number from 1; `default`, `restricted` or `scopes` where none
    /// of the rules decided.
    pub rule: Arc<str>,
    /// Names the content of all rules; `None` if there are none.
    pub policy: Option<Arc<str>>,
}

/// What is known of one call. The layers write it, through its [`CallRecord`].
///
/// The three times are those that the call spends outside the runtime, as sums over its attempts;
/// the rest is the runtime's overhead. The layer that waits writes them when the wait is over, so
/// waits that a dropped call did not finish are not included. Attempts beside each other count
/// twice.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallFacts {
    /// The rule that allowed or refused it, where there are rules.
    pub authorization: Option<Arc<Authorization>>,
    /// The request for approval, if a person was asked.
    pub confirmation: Option<Arc<Confirmation>>,
    /// What the cache did.
    pub cache: CacheStatus,
    /// Why the cache sent the call without a look-up.
    pub cache_bypass: Option<&'static str>,
    /// How long ago the answer was made, if it came from the cache.
    pub cache_age: Option<Duration>,
    /// Which state the call reads or writes, as the cache sees it. Only where decisions are
    /// [wanted](CallRecord::wants_decisions).
    pub cache_scope: Option<String>,
    /// How many attempts were started, those included that never end.
    pub started_attempts: u32,
    /// The attempts that ended, in the order they did.
    pub attempts: Vec<AttemptRecord>,
    /// The call was sent again, after an attempt that may have run and may still land.
    pub is_resent: bool,
    /// The outcome of a hedged attempt.
    pub hedge: HedgeStatus,
    /// The call was answered without any server, because it failed so often before.
    pub is_guarded: bool,
    /// The server chosen last, and why.
    pub server: Option<(ServerId, &'static str)>,
    /// How long servers had the call.
    pub server_time: Duration,
    /// How long the call waited for tokens and permits.
    pub limit_time: Duration,
    /// How long the call paused between attempts.
    pub pause_time: Duration,
    /// What was decided, in the order it was: of each stage the first decisions, and the last.
    pub decisions: Vec<Decision>,
    /// How many decisions are not kept.
    pub left_out: u32,
}

impl CallFacts {
    /// How many decisions of each stage are kept.
    pub(super) const MAX_OF_A_STAGE: usize = 16;

    /// Returns `true` if more than one attempt may have run: one may still land after the call's
    /// end.
    pub const fn was_retried(&self) -> bool {
        self.is_resent || self.started_attempts > 1
    }

    fn push(&mut self, decision: Decision) {
        let same = |kept: &Decision| kept.stage == decision.stage;
        let count = self.decisions.iter().filter(|kept| same(kept)).count();
        if count >= Self::MAX_OF_A_STAGE
            && let Some(last) = self.decisions.iter().rposition(same)
        {
            let _replaced = self.decisions.remove(last);
            self.left_out = self.left_out.saturating_add(1);
        }
        self.decisions.push(decision);
    }
}

/// The record of one call: written by the layers, read by spans, tables and `explain`.
///
/// A call carries one only if it will be read, so the fast paths write nothing.
#[derive(Debug, Default)]
pub struct CallRecord {
    counts_only: AtomicBool,
    facts: Mutex<CallFacts>,
}

impl CallRecord {
    /// Starts an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an empty record for code that only counts calls: layers record outcomes, but not how
    /// they decided.
    pub fn for_counting() -> Self {
        Self {
            counts_only: AtomicBool::new(true),
            ..Self::default()
        }
    }

    /// Calls a function with what is known of the call, to read it or to write it. The record is
    /// locked meanwhile: the function must not use it in another way.
    pub fn with<T>(&self, use_facts: impl FnOnce(&mut CallFacts) -> T) -> T {
        use_facts(&mut self.facts.lock())
    }

    /// Returns a copy of what is known of the call.
    pub fn facts(&self) -> CallFacts {
        self.with(|facts| facts.clone())
    }

    /// Returns `true` if layers write their decisions.
    pub fn wants_decisions(&self) -> bool {
        !self.counts_only.load(Ordering::Relaxed)
    }

    /// Makes layers write their decisions from now on.
    pub fn ask_for_decisions(&self) {
        self.counts_only.store(false, Ordering::Relaxed);
    }

    /// Writes a decision about the call, if that is [wanted](Self::wants_decisions); else it is not
    /// made. Beyond 16 decisions of a stage it replaces the last one.
    /// [`ToolCall::decided`](crate::ToolCall::decided) writes decisions about an attempt.
    pub fn decided(&self, make: impl FnOnce() -> Decision) {
        if self.wants_decisions() {
            let decision = make();
            self.with(|facts| facts.push(decision));
        }
    }

    /// Writes how the router decided, and which server it chose for the running attempt if it chose
    /// one.
    pub fn note_route(&self, route: &Arc<RouteDecision>) {
        if let Some(server) = route.chosen.clone() {
            self.with(|facts| facts.server = Some((server, route.reason)));
        }
        self.decided(|| Decision::of_route(route));
    }

    /// Returns how the router decided last about this attempt, if that is kept.
    pub fn route_of(&self, attempt: &Attempt) -> Option<Arc<RouteDecision>> {
        self.with(|facts| {
            let mut routes = facts
                .decisions
                .iter()
                .filter_map(|kept| kept.route.as_ref());
            routes.rfind(|route| route.is_of(attempt)).cloned()
        })
    }

    /// Writes how this attempt ended.
    pub fn end_attempt(&self, attempt: &Attempt, ended: AttemptRecord) {
        self.decided(|| ended.decision(attempt));
        self.with(|facts| facts.attempts.push(ended));
    }
}
