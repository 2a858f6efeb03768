//! Serving an answer whose time is over while one call fetches a new one.

use callward_core::{
    CacheStatus, ErrorKind, Purpose, ToolCall, ToolError, ToolOutput, ToolService,
};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::busy::Turn;
use super::mark;
use crate::event::{Happened, StaleReason};
use crate::read::Read;
use crate::shared::{note, unshareable};
use crate::store::Entry;

/// A refresh is given up after this many of the tool's attempt timeouts: one for its attempt, and as
/// much again for waiting before it.
const PATIENCE: u32 = 2;

impl Read {
    /// Returns an answer whose time is over, marked, if it may be served while a new one is fetched;
    /// and sees to it that one is, by one call for all who are served meanwhile.
    ///
    /// The entry was found under the epochs of now, so nothing was written since it was read.
    pub(crate) fn while_revalidating<S: ToolService>(
        &self,
        key: u128,
        entry: &Entry,
        inner: &S,
        call: &ToolCall,
        now: Instant,
    ) -> Option<ToolOutput> {
        let shared = &self.shared;
        if shared.config.stale_while_revalidate.is_zero() {
            return None;
        }
        let window = shared.windows(entry.output(), &self.identity).revalidate;
        let age = entry.age(now);
        if age >= self.gate.limit(entry.ttl(), now).saturating_add(window) {
            return None;
        }
        let runtime = Handle::try_current().ok()?;
        let reason = StaleReason::Revalidating;
        let output = mark::stale(entry.output(), age, reason)?;
        let record = &self.version.record;
        record.counters.stale.add_one();
        record.counters.save(entry.cost());
        shared.tell(record, || Happened::Stale { age, reason });
        note(call, CacheStatus::Stale);
        if let Some(turn) = shared.refreshing.enter(key) {
            let call = call.in_background(Purpose::Refresh);
            runtime.spawn(self.clone().refresh(inner.clone(), call, turn));
        }
        Some(output)
    }

    /// Fetches a new answer. Whoever does not find the old one any more meanwhile joins the flight.
    async fn refresh<S: ToolService>(self, inner: S, call: ToolCall, turn: Turn) {
        let (shared, version) = (self.shared.clone(), self.version.clone());
        let (patience, pause) = {
            let limits = &call.plan().limits;
            let patience = limits.attempt_timeout.saturating_mul(PATIENCE);
            (patience, limits.first_backoff)
        };
        let result = timeout(patience, self.run(inner, call)).await;
        let failed = match result {
            Ok(Ok(output)) => unshareable(&output).map(|reason| reason.as_str()),
            Ok(Err(error)) => Some(ToolError::kind(&error).as_str()),
            Err(_) => Some(ErrorKind::Timeout.as_str()),
        };
        let record = &version.record;
        match failed {
            None => {
                record.counters.refreshes.add_one();
                shared.tell(record, || Happened::Refreshed);
            }
            Some(reason) => {
                record.counters.failed_refreshes.add_one();
                shared.tell(record, || Happened::RefreshFailed(reason));
                // the old answer is still served: who asks next must not call at once again
                sleep(pause).await;
            }
        }
        drop(turn);
    }
}
