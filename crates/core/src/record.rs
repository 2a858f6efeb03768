//! The record of one call on its way through the stack.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::trail::{Decision, Stage, Verdict};
use crate::{Attempt, ErrorKind, RouteDecision, ServerId, Spent};

mod log;
mod status;

use log::Log;
pub use status::{CacheStatus, HedgeStatus};

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
    pub fn new(server: Option<ServerId>, error: Option<ErrorKind>, took: Duration) -> Self {
        Self {
            server,
            error,
            took,
        }
    }

    fn decision(&self, attempt: &Attempt) -> Decision {
        let (verdict, reason) = match self.error {
            None => (Verdict::Answered, ""),
            Some(ErrorKind::Cancelled) => (Verdict::Cancelled, ""),
            Some(kind) => (Verdict::Failed, kind.as_str()),
        };
        let decision = Decision::new(Stage::Attempt, verdict, reason)
            .of_attempt(attempt)
            .took(self.took);
        match &self.server {
            Some(server) => decision.at(server.clone()),
            None => decision,
        }
    }
}

/// The record of one call: written by the layers, read by spans, tables and `explain`.
///
/// A call carries one only if it will be read, so the fast paths write nothing.
#[derive(Debug, Default)]
pub struct CallRecord {
    cache: AtomicU8,
    bypass: OnceLock<&'static str>,
    age: OnceLock<Duration>,
    scope: OnceLock<Box<str>>,
    started: AtomicU32,
    repeated: AtomicBool,
    hedge: AtomicU8,
    guarded: AtomicBool,
    attempts: Mutex<Vec<AttemptRecord>>,
    counts_only: AtomicBool,
    spent: Spent,
    /// The server chosen last, and why.
    server: Mutex<Option<(ServerId, &'static str)>>,
    log: Mutex<Log>,
}

impl CallRecord {
    /// How many decisions of each stage are kept: the first ones, and the last.
    pub(crate) const MOST_OF_A_STAGE: usize = 16;

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
            lock(&self.log).push(decision);
        }
    }

    /// Returns what was decided, in the order it was, and how many decisions are not kept.
    pub fn decisions(&self) -> (Vec<Decision>, u32) {
        let log = lock(&self.log);
        (log.decisions().to_vec(), log.left_out())
    }

    /// Writes what the cache did.
    pub fn set_cache(&self, status: CacheStatus) {
        self.cache.store(status as u8, Ordering::Relaxed);
    }

    /// Writes that the cache sent the call without a look-up, and why.
    pub fn set_cache_bypass(&self, reason: &'static str) {
        self.set_cache(CacheStatus::Bypass);
        // a call is decided once; a second decision adds nothing
        let _first = self.bypass.set(reason);
    }

    /// Returns why the cache sent the call without a look-up.
    pub fn cache_bypass(&self) -> Option<&'static str> {
        self.bypass.get().copied()
    }

    /// Writes how long ago the answer was made that came from the cache.
    pub fn set_cache_age(&self, age: Duration) {
        let _first = self.age.set(age);
    }

    /// Returns how long ago the answer was made, if it came from the cache and the cache said so.
    pub fn cache_age(&self) -> Option<Duration> {
        self.age.get().copied()
    }

    /// Writes which state the call reads or writes, as the cache sees it, if that is
    /// [wanted](Self::wants_decisions).
    pub fn set_cache_scope(&self, scope: impl FnOnce() -> String) {
        if self.wants_decisions() {
            let _first = self.scope.set(scope().into());
        }
    }

    /// Returns which state the call reads or writes, if the cache said so.
    pub fn cache_scope(&self) -> Option<&str> {
        self.scope.get().map(|scope| &**scope)
    }

    /// Returns what the cache did.
    pub fn cache(&self) -> CacheStatus {
        CacheStatus::from_u8(self.cache.load(Ordering::Relaxed))
    }

    /// Notes that an attempt starts, so that one that never ends is counted too.
    pub fn start_attempt(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many attempts were started.
    pub fn started_attempts(&self) -> u32 {
        self.started.load(Ordering::Relaxed)
    }

    /// Notes that the call is sent again, after an attempt that may have run and may still land.
    pub fn note_retry(&self) {
        self.repeated.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if more than one attempt may have run: one may still land after the call's
    /// end.
    pub fn was_retried(&self) -> bool {
        self.repeated.load(Ordering::Relaxed) || self.started_attempts() > 1
    }

    /// Writes the outcome of a second attempt beside the first. A final outcome is kept: a call
    /// whose first pair of attempts failed may be repeated, and hedged again.
    pub fn note_hedge(&self, status: HedgeStatus) {
        self.hedge.fetch_max(status as u8, Ordering::Relaxed);
    }

    /// Returns the outcome of a hedged attempt.
    pub fn hedge(&self) -> HedgeStatus {
        HedgeStatus::from_u8(self.hedge.load(Ordering::Relaxed))
    }

    /// Notes that the call was answered without any server, because it failed so often before.
    pub fn note_guarded(&self) {
        self.guarded.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the call was answered without any server, because it failed so often
    /// before.
    pub fn was_guarded(&self) -> bool {
        self.guarded.load(Ordering::Relaxed)
    }

    /// Writes which server the router chose for the running attempt, and why.
    pub fn set_server(&self, server: ServerId, reason: &'static str) {
        *lock(&self.server) = Some((server, reason));
    }

    /// Returns the server chosen last, and why.
    pub fn server(&self) -> Option<(ServerId, &'static str)> {
        lock(&self.server).clone()
    }

    /// Writes how the router decided, and which server it chose for the running attempt if it chose
    /// one.
    pub fn note_route(&self, route: &Arc<RouteDecision>) {
        if let Some(server) = &route.chosen {
            self.set_server(server.clone(), route.reason);
        }
        self.decided(|| Decision::of_route(route));
    }

    /// Returns how the router decided, each time it did: for each attempt, and for each server
    /// asked after one that refused. Empty without a router, and for a call that the cache answers.
    pub fn routes(&self) -> Vec<Arc<RouteDecision>> {
        lock(&self.log).routes().cloned().collect()
    }

    /// Returns the last decision made for this attempt, if it is kept.
    pub fn route_of(&self, attempt: &Attempt) -> Option<Arc<RouteDecision>> {
        let log = lock(&self.log);
        log.routes().rfind(|route| route.is_of(attempt)).cloned()
    }

    /// Writes how this attempt ended.
    pub fn end_attempt(&self, attempt: &Attempt, ended: AttemptRecord) {
        self.decided(|| ended.decision(attempt));
        lock(&self.attempts).push(ended);
    }

    /// Returns what the call's time went into that is not the runtime's own work.
    pub const fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Calls a function with the attempts that ended, in that order.
    pub fn each_attempt(&self, read: impl FnMut(&AttemptRecord)) {
        lock(&self.attempts).iter().for_each(read);
    }

    /// Returns the attempts that ended, in the order they did.
    pub fn attempts(&self) -> Vec<AttemptRecord> {
        lock(&self.attempts).clone()
    }
}

/// A record is for information only: a panic elsewhere must not spread through it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
