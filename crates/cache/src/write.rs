//! A write: epochs before and after it, and its own answer kept where that is sound.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CacheStatus, CallClient, CallRecord, OutputStatus, ToolCall, ToolError, ToolOutput, ToolService,
};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::fresh::Expiry;
use crate::observed::Running;
use crate::read::was_asked;
use crate::reason::RefusalReason;
use crate::route::Lookup;
use crate::scope::WriteGuard;
use crate::settling::{Ended, Settling};
use crate::shared::{Received, Shared, note, note_scope};
use crate::tools::Version;

/// A write. Its scopes change just before it is sent: one that is dropped while the inner service
/// is not ready has changed nothing.
#[derive(Debug)]
pub(crate) struct Write {
    shared: Arc<Shared>,
    version: Arc<Version>,
    /// How the answer of an idempotent write is kept. Boxed, as most writes have none.
    keep: Option<Box<Lookup>>,
    record: Option<Arc<CallRecord>>,
    sent: Option<Sent>,
}

/// A write that was sent and has not ended.
#[derive(Debug)]
struct Sent {
    guard: WriteGuard,
    /// Held until it has ended.
    _running: Running,
    at: Instant,
    attempt_timeout: Duration,
    deadline: Option<Instant>,
    declared: Option<Duration>,
    client: Option<CallClient>,
    /// The epoch of the principal when the write was sent; counts only if its answer is kept.
    principal_epoch: u64,
}

impl Write {
    pub(crate) fn new(shared: Arc<Shared>, version: Arc<Version>, keep: Option<Lookup>) -> Self {
        Self {
            shared,
            version,
            keep: keep.map(Box::new),
            record: None,
            sent: None,
        }
    }

    pub(crate) async fn run<S: ToolService>(
        mut self,
        mut inner: S,
        call: ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let inner = inner.ready().await?;
        let call = self.begin(call);
        let result = inner.call(call).await;
        self.end(Some(&result));
        result
    }

    /// Counts the write in just before it is sent; returns the call to send.
    fn begin(&mut self, mut call: ToolCall) -> ToolCall {
        let (shared, access) = (&*self.shared, &self.version.access);
        let at = Instant::now();
        let repeat_set = self.keep.as_ref();
        let repeat_set = repeat_set.map(|keep| keep.scopes(shared, &self.version, &call));
        let principal = self.keep.as_ref().and_then(|keep| keep.identity.principal);
        let principal_epoch = shared.principals.epoch(principal);
        let write_set = access.write_set(&shared.scopes, &call);
        let limits = &call.plan().limits;
        self.sent = Some(Sent {
            guard: WriteGuard::begin(write_set, repeat_set.as_ref(), shared.scopes.at(at)),
            _running: self.version.record.observer.begin(call.tool(), false),
            at,
            attempt_timeout: limits.attempt_timeout,
            deadline: call.deadline.map(Instant::from_std),
            declared: limits.estimated_duration,
            client: call.client.clone(),
            principal_epoch,
        });
        self.version
            .record
            .count(|counts| counts.invalidations += 1);
        note(&call, CacheStatus::Invalidated);
        note_scope(&call, || access.describe_writes());
        if call.plan().is_retryable() {
            self.record = Some(call.ensure_record(CallRecord::for_counting));
        }
        call
    }

    /// Counts the write out; keeps its answer if nothing else happened meanwhile.
    fn end(&mut self, result: Option<&Result<ToolOutput, ToolError>>) {
        let Some(sent) = self.sent.take() else {
            return;
        };
        let now = Instant::now();
        let took = now.saturating_duration_since(sent.at);
        let settling = match self.goes_on(&sent, result, now) {
            true => Settling::DONE,
            false => self.settling(&sent, result, now),
        };
        let produced = sent.guard.end(settling, self.shared.scopes.at(now));
        // an earlier attempt may have been the success
        if let (Some(keep), Some(result), false) = (&self.keep, result, self.was_retried()) {
            let (tool, call) = (&self.version.tool, keep.identity.digest);
            self.version.record.observer.wrote(tool, call, result);
        }
        let Some(Ok(output)) = result else {
            return;
        };
        let (shared, record) = (&*self.shared, &*self.version.record);
        let asked = was_asked(sent.client.as_ref());
        if !asked && output.status() != OutputStatus::Task {
            record.writes.observe(took);
        }
        let Some(keep) = &self.keep else {
            return;
        };
        let expiry = match shared.expiry(output, keep, asked) {
            Ok(expiry) => Expiry {
                // a write is not served beyond its lifetime
                stale: Duration::ZERO,
                ..expiry
            },
            Err(reason) => return record.refuse(reason),
        };
        // its principal may have been purged meanwhile
        let (identity, principal_epoch) = (&keep.identity, sent.principal_epoch);
        let is_purged = shared.principals.epoch(identity.principal) != principal_epoch;
        let Some(epochs) = produced.filter(|_| !is_purged) else {
            return record.refuse(RefusalReason::Overtaken);
        };
        let key = shared.keys.key(identity, principal_epoch, &epochs);
        let received = Received {
            output,
            sent: sent.at,
            took,
            declared: sent.declared,
            verifies: false,
            place: None,
        };
        keep.gate.executed(shared, record, key, &received);
        shared.keep(key, record, &received, expiry);
    }

    /// Follows the task that the write goes on as. Returns `true` if nothing else may still land.
    fn goes_on(
        &self,
        sent: &Sent,
        result: Option<&Result<ToolOutput, ToolError>>,
        now: Instant,
    ) -> bool {
        let output = result.and_then(|result| result.as_ref().ok());
        let Some(task) = output.and_then(ToolOutput::task) else {
            return false;
        };
        let (set, clock) = (&self.version.record.set, &self.shared.scopes);
        let open = &self.shared.open_tasks;
        let is_followed = open.begin(set, task, sent.guard.write_set(), (clock, now));
        is_followed && !self.was_retried()
    }

    /// Returns `true` if an earlier attempt may still land.
    fn was_retried(&self) -> bool {
        let was_retried = |record: &Arc<CallRecord>| record.with(|facts| facts.was_retried());
        self.record.as_ref().is_some_and(was_retried)
    }

    /// Decides for how long the write set is unsettled.
    fn settling(
        &self,
        sent: &Sent,
        result: Option<&Result<ToolOutput, ToolError>>,
        now: Instant,
    ) -> Settling {
        let left = |deadline: Instant| deadline.saturating_duration_since(now);
        let record = &self.version.record;
        let settling = Settling::of(&Ended {
            result,
            retried: self.was_retried(),
            writes: &record.writes,
            ceiling: self.shared.config.settle,
            attempt_timeout: sent.attempt_timeout,
            to_deadline: sent.deadline.map(left).unwrap_or_default(),
        });
        if !settling.unsettled.is_zero() {
            let state = self.version.access.describe_writes();
            let all = &self.shared.unsettled;
            all.note(state, record, result, now, settling.unsettled);
        }
        settling
    }
}

/// Dropped before its answer, a write may still land.
impl Drop for Write {
    fn drop(&mut self) {
        self.end(None);
    }
}
