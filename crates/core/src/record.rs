//! What happened to one call on its way through the stack.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::{Approval, Attempt, ErrorKind, RouteDecision, ServerId, Spent};

/// What the cache did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CacheStatus {
    /// The cache was not asked, or there is none.
    Bypass = 0,
    /// Answered from the cache.
    Hit = 1,
    /// Waited for an identical call that was already running.
    Joined = 2,
    /// Looked up, not found; the call ran.
    Miss = 3,
    /// A write: the call ran, and what it may have changed was dropped.
    Invalidated = 4,
    /// Answered from the cache after the end of the answer's lifetime: while a new one is fetched, or
    /// because the server fails. The answer's `_meta` says so.
    Stale = 5,
}

impl CacheStatus {
    /// All of them, in the order of their numbers.
    pub const ALL: &[Self] = &[
        Self::Bypass,
        Self::Hit,
        Self::Joined,
        Self::Miss,
        Self::Invalidated,
        Self::Stale,
    ];

    /// Returns the word used in spans, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Hit => "hit",
            Self::Joined => "joined",
            Self::Miss => "miss",
            Self::Invalidated => "invalidated",
            Self::Stale => "stale",
        }
    }

    const fn from_u8(value: u8) -> Self {
        match value {
            1 => Self::Hit,
            2 => Self::Joined,
            3 => Self::Miss,
            4 => Self::Invalidated,
            5 => Self::Stale,
            _ => Self::Bypass,
        }
    }
}

/// What became of a second attempt that ran beside the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum HedgeStatus {
    /// None was sent.
    None = 0,
    /// It was sent, and did not decide the answer: the first attempt did, or both failed, or the
    /// call still runs.
    Sent = 1,
    /// It answered first, and its answer is the call's.
    Won = 2,
}

impl HedgeStatus {
    /// Returns the word used in spans, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sent => "sent",
            Self::Won => "won",
        }
    }

    const fn from_u8(value: u8) -> Self {
        match value {
            1 => Self::Sent,
            2 => Self::Won,
            _ => Self::None,
        }
    }
}

/// One attempt: which server, how it ended, how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// The server that was asked, if one was chosen.
    pub server: Option<ServerId>,
    /// The failure, or `None` for an answer.
    pub error: Option<ErrorKind>,
    /// From the start of the attempt to its end.
    pub took: Duration,
}

impl AttemptRecord {
    /// States one attempt.
    #[must_use]
    pub fn new(server: Option<ServerId>, error: Option<ErrorKind>, took: Duration) -> Self {
        Self {
            server,
            error,
            took,
        }
    }
}

/// What happened to one call: written by the layers, read by spans, tables and `explain`.
///
/// A call carries one only if somebody will read it, so the fast paths write nothing.
#[derive(Debug, Default)]
pub struct CallRecord {
    cache: AtomicU8,
    bypass: OnceLock<&'static str>,
    age: OnceLock<Duration>,
    started: AtomicU32,
    repeated: AtomicBool,
    hedge: AtomicU8,
    guarded: AtomicBool,
    approval: OnceLock<Approval>,
    attempts: Mutex<Vec<AttemptRecord>>,
    counts_only: AtomicBool,
    spent: Spent,
    routes: Mutex<Routes>,
}

/// Where the call went.
#[derive(Debug, Default)]
struct Routes {
    /// The server chosen last, and why.
    server: Option<(ServerId, &'static str)>,
    decisions: Vec<Arc<RouteDecision>>,
    left_out: u32,
}

impl CallRecord {
    /// So many decisions of a router are kept: the first ones, and the last.
    pub const MOST_ROUTES: usize = 16;

    /// Starts an empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an empty record for somebody who only counts calls: no router need say how it decided,
    /// only which server it chose.
    #[must_use]
    pub fn for_counting() -> Self {
        Self {
            counts_only: AtomicBool::new(true),
            ..Self::default()
        }
    }

    /// Says whether routers are to write how they decided.
    #[must_use]
    pub fn wants_routes(&self) -> bool {
        !self.counts_only.load(Ordering::Relaxed)
    }

    /// Asks routers to write how they decide, from now on.
    pub fn ask_for_routes(&self) {
        self.counts_only.store(false, Ordering::Relaxed);
    }

    /// Writes what the cache did.
    pub fn set_cache(&self, status: CacheStatus) {
        self.cache.store(status as u8, Ordering::Relaxed);
    }

    /// Writes that the cache sent the call without a look-up, and why.
    pub fn set_cache_bypass(&self, reason: &'static str) {
        self.set_cache(CacheStatus::Bypass);
        // a call is decided once; what comes second has nothing to add
        let _first = self.bypass.set(reason);
    }

    /// Returns why the cache sent the call without a look-up.
    #[must_use]
    pub fn cache_bypass(&self) -> Option<&'static str> {
        self.bypass.get().copied()
    }

    /// Writes how long ago the answer was made that came from the cache.
    pub fn set_cache_age(&self, age: Duration) {
        let _first = self.age.set(age);
    }

    /// Returns how long ago the answer was made, if it came from the cache and the cache said so.
    #[must_use]
    pub fn cache_age(&self) -> Option<Duration> {
        self.age.get().copied()
    }

    /// Returns what the cache did.
    #[must_use]
    pub fn cache(&self) -> CacheStatus {
        CacheStatus::from_u8(self.cache.load(Ordering::Relaxed))
    }

    /// Notes that an attempt starts, so that one that never ends is counted too.
    pub fn start_attempt(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many attempts were started.
    #[must_use]
    pub fn started_attempts(&self) -> u32 {
        self.started.load(Ordering::Relaxed)
    }

    /// Notes that the call is sent again, after an attempt that may have run and may still land.
    pub fn note_repeat(&self) {
        self.repeated.store(true, Ordering::Relaxed);
    }

    /// Says whether more than one attempt may have run: one may still land after the call's end.
    #[must_use]
    pub fn was_repeated(&self) -> bool {
        self.repeated.load(Ordering::Relaxed) || self.started_attempts() > 1
    }

    /// Writes what becomes of a second attempt beside the first. What is better known is kept: a call
    /// whose first pair of attempts failed may be repeated, and hedged again.
    pub fn note_hedge(&self, status: HedgeStatus) {
        self.hedge.fetch_max(status as u8, Ordering::Relaxed);
    }

    /// Returns what became of a second attempt beside the first.
    #[must_use]
    pub fn hedge(&self) -> HedgeStatus {
        HedgeStatus::from_u8(self.hedge.load(Ordering::Relaxed))
    }

    /// Notes that the call was answered without any server, because it failed so often before.
    pub fn note_guarded(&self) {
        self.guarded.store(true, Ordering::Relaxed);
    }

    /// Says whether the call was answered without any server, because it failed so often before.
    #[must_use]
    pub fn was_guarded(&self) -> bool {
        self.guarded.load(Ordering::Relaxed)
    }

    /// Writes what somebody said who was asked before the call. A call is asked for once.
    pub fn set_approval(&self, approval: Approval) {
        let _first = self.approval.set(approval);
    }

    /// Returns what somebody said who was asked before the call, if anybody was.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        self.approval.get()
    }

    /// Writes which server the router chose for the running attempt, and why.
    pub fn set_server(&self, server: ServerId, reason: &'static str) {
        lock(&self.routes).server = Some((server, reason));
    }

    /// Returns the server chosen last, and why.
    #[must_use]
    pub fn server(&self) -> Option<(ServerId, &'static str)> {
        lock(&self.routes).server.clone()
    }

    /// Writes how the router decided, and which server it chose for the running attempt if it chose
    /// one. Beyond [`MOST_ROUTES`](Self::MOST_ROUTES) it takes the place of the one before.
    pub fn note_route(&self, decision: Arc<RouteDecision>) {
        let mut routes = lock(&self.routes);
        if let Some(server) = &decision.chosen {
            routes.server = Some((server.clone(), decision.reason));
        }
        if routes.decisions.len() >= Self::MOST_ROUTES {
            routes.decisions.pop();
            routes.left_out = routes.left_out.saturating_add(1);
        }
        routes.decisions.push(decision);
    }

    /// Returns how the router decided, each time it did: for each attempt, and for each server asked
    /// after one that refused. Empty where nobody routes, and for a call the cache answers.
    #[must_use]
    pub fn routes(&self) -> Vec<Arc<RouteDecision>> {
        lock(&self.routes).decisions.clone()
    }

    /// Returns how many decisions are not kept, because there were too many.
    #[must_use]
    pub fn routes_left_out(&self) -> u32 {
        lock(&self.routes).left_out
    }

    /// Returns the last decision made for this attempt, if it is kept.
    #[must_use]
    pub fn route_of(&self, attempt: &Attempt) -> Option<Arc<RouteDecision>> {
        let routes = lock(&self.routes);
        let mut latest = routes.decisions.iter().rev();
        latest.find(|decision| decision.is_of(attempt)).cloned()
    }

    /// Writes how an attempt ended.
    pub fn end_attempt(&self, attempt: AttemptRecord) {
        lock(&self.attempts).push(attempt);
    }

    /// Returns what the call's time went into that is not the runtime's own work.
    #[must_use]
    pub const fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Reads the attempts that ended, in the order they did, where they are.
    pub fn each_attempt(&self, read: impl FnMut(&AttemptRecord)) {
        lock(&self.attempts).iter().for_each(read);
    }

    /// Returns the attempts that ended, in the order they did.
    #[must_use]
    pub fn attempts(&self) -> Vec<AttemptRecord> {
        lock(&self.attempts).clone()
    }
}

/// A record is only told about, never relied on: a panic elsewhere must not spread through it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::{
        Annotations, CallPlan, Profile, ReplicaSetId, Resolved, Source, Tool, ToolCall,
        ToolDefinition,
    };

    fn call() -> ToolCall {
        let listed = br#"{"name":"read","inputSchema":{"type":"object"}}"#;
        let definition = ToolDefinition::from_json(Bytes::from_static(listed)).unwrap();
        let resolved = Resolved::from_single(Annotations::default(), Source::Declared);
        let plan = CallPlan::derive(&resolved, &Profile::standard());
        let set = ReplicaSetId::new("orders").unwrap();
        ToolCall::new(Arc::new(Tool::new(set, definition, resolved, plan)), "")
    }

    fn decision(call: &ToolCall, chosen: Option<&str>) -> Arc<RouteDecision> {
        let mut decision = RouteDecision::new(call, "round_robin");
        decision.chosen = chosen.map(|id| ServerId::new(id).unwrap());
        decision.reason = "in turn";
        Arc::new(decision)
    }

    #[test]
    fn the_server_is_that_of_the_last_decision_that_chose_one() {
        let (call, record) = (call(), CallRecord::new());
        assert_eq!(record.server(), None);
        record.note_route(decision(&call, Some("a")));
        record.note_route(decision(&call, Some("b")));
        record.note_route(decision(&call, None));
        let (server, reason) = record.server().unwrap();
        assert_eq!((server.as_str(), reason), ("b", "in turn"));
        // who knows better, such as which of two attempts won, may say so
        record.set_server(ServerId::new("a").unwrap(), "won");
        assert_eq!(record.server().unwrap().1, "won");
        assert_eq!(record.routes().len(), 3);
    }

    #[test]
    fn a_record_keeps_the_first_decisions_and_the_last_and_counts_the_rest() {
        let (call, record) = (call(), CallRecord::new());
        for number in 0..20 {
            record.note_route(decision(&call, Some(&format!("s{number}"))));
        }
        let chosen: Vec<_> = record.routes().iter().map(|d| d.chosen.clone()).collect();
        assert_eq!(chosen.len(), CallRecord::MOST_ROUTES);
        assert_eq!(chosen[14].as_ref().unwrap().as_str(), "s14");
        assert_eq!(chosen[15].as_ref().unwrap().as_str(), "s19");
        assert_eq!(record.routes_left_out(), 4);
    }

    #[test]
    fn each_attempt_finds_its_own_decision() {
        let (mut call, record) = (call(), CallRecord::new());
        let first = call.attempt().clone();
        record.note_route(decision(&call, Some("a")));
        record.note_route(decision(&call, Some("b")));
        call.attempt_mut().elsewhere_only = true;
        let beside = call.attempt().clone();
        record.note_route(decision(&call, Some("c")));
        call.attempt_mut().advance(None);
        let second = call.attempt().clone();
        assert_eq!(record.route_of(&second), None);
        record.note_route(decision(&call, None));
        let chosen = |attempt| record.route_of(attempt).unwrap().chosen.clone();
        assert_eq!(chosen(&first).unwrap().as_str(), "b");
        assert_eq!(chosen(&beside).unwrap().as_str(), "c");
        assert_eq!(chosen(&second), None);
    }

    #[test]
    fn only_a_record_for_counting_wants_no_decisions_until_somebody_asks() {
        assert!(CallRecord::new().wants_routes() && CallRecord::default().wants_routes());
        let counting = CallRecord::for_counting();
        assert!(!counting.wants_routes());
        counting.ask_for_routes();
        assert!(counting.wants_routes());
    }
}
