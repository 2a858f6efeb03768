//! Serving a stale answer while one call fetches a new one.

use std::sync::Arc;

use callward_core::{CacheStatus, Purpose, ToolCall, ToolOutput, ToolService};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::mark;
use crate::read::Read;
use crate::shared::{note, unshareable};
use crate::store::{Entry, RefreshGuard};

/// A refresh times out after this many of the tool's attempt timeouts: one for its attempt, and one
/// for the wait before it.
const ATTEMPT_TIMEOUTS: u32 = 2;

impl Read {
    /// Returns a stale answer, marked, if it may be served while a new one is fetched; starts the
    /// one call that fetches it for all who are served meanwhile.
    ///
    /// The entry was found under the current epochs, so nothing was written since it was read.
    pub(crate) fn while_revalidating<S: ToolService>(
        &self,
        entry: &Arc<Entry>,
        inner: &S,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let (shared, lookup, now) = (&self.shared, &self.lookup, Instant::now());
        if shared.config.stale_while_revalidate.is_zero() {
            return None;
        }
        let window = shared.revalidation_window(&entry.output().freshness(), &lookup.identity);
        let age = entry.age(now);
        if age >= lookup.gate.limit(entry.ttl(), now).saturating_add(window) {
            return None;
        }
        let runtime = Handle::try_current().ok()?;
        let output = mark::stale(entry.output(), age, "revalidating")?;
        self.version.record.count(|counts| {
            counts.stale += 1;
            counts.saved += entry.cost();
        });
        note(call, CacheStatus::Stale);
        if let Some(guard) = RefreshGuard::begin(entry) {
            let call = call.in_background(Purpose::Refresh);
            runtime.spawn(self.clone().refresh(inner.clone(), call, guard));
        }
        Some(output)
    }

    /// Fetches a new answer. Callers that find the old one too old meanwhile join the flight.
    async fn refresh<S: ToolService>(self, inner: S, call: ToolCall, guard: RefreshGuard) {
        let version = self.version.clone();
        let limits = &call.plan().limits;
        let longest = limits.attempt_timeout.saturating_mul(ATTEMPT_TIMEOUTS);
        let pause = limits.first_backoff;
        let result = timeout(longest, self.run(inner, call)).await;
        if matches!(&result, Ok(Ok(output)) if unshareable(output).is_none()) {
            version.record.count(|counts| counts.refreshes += 1);
        } else {
            version.record.count(|counts| counts.failed_refreshes += 1);
            // the old answer is still served: the next caller must not start a call at once
            sleep(pause).await;
        }
        drop(guard);
    }
}
