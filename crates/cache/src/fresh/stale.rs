//! Serving an answer beyond its lifetime: while one call fetches a new one, or because the server
//! fails. The epochs in its key are the current ones: nothing was written since it was read.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CACHE_META, CacheStatus, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use serde_json::{json, value::to_raw_value};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::read::Read;
use crate::shared::{note, unshareable};
use crate::store::{Entry, RefreshGuard};

/// A refresh times out after this many of the tool's attempt timeouts: one for its attempt, and one
/// for the wait before it.
const ATTEMPT_TIMEOUTS: u32 = 2;

impl Read {
    /// Returns a stale answer, marked, if it may be served while a new one is fetched; starts the
    /// one call that fetches it for all who are served meanwhile.
    pub(crate) fn while_revalidating<S: ToolService>(
        &self,
        entry: &Arc<Entry>,
        inner: &S,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let allowed = self.shared.config.stale_while_revalidate;
        let runtime = (!allowed.is_zero()).then(Handle::try_current)?.ok()?;
        let output = self.marked(entry, allowed, "revalidating")?;
        self.version.record.count(|counts| {
            counts.stale += 1;
            counts.saved += entry.cost;
        });
        if let Some(stats) = &call.tool().stats {
            stats.count_cached();
        }
        note(call, CacheStatus::Stale);
        if let Some(guard) = RefreshGuard::begin(entry) {
            let call = call.in_background();
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

    /// Returns the last answer, marked, in place of a failure, if it may be served so.
    pub(crate) fn in_place_of(
        &self,
        error: &ToolError,
        key: u128,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let kind = error.kind;
        // a fault of the call, or a request to come later, is reported to the caller
        let server_fails = kind.blames_server()
            || matches!(kind, ErrorKind::BreakerOpen | ErrorKind::NoEligibleServer);
        let entry = server_fails.then(|| self.shared.store.get(key))??;
        let output = self.marked(&entry, self.shared.config.stale_if_error, kind.as_str())?;
        self.version.record.count(|counts| counts.rescued += 1);
        note(call, CacheStatus::Stale);
        Some(output)
    }

    /// Returns the answer with a mark in its `_meta`: that it is stale, its age, and why it is
    /// served. `None` if its lifetime ended longer ago than is allowed, or if it cannot be marked:
    /// then it must not be served.
    fn marked(&self, entry: &Entry, allowed: Duration, reason: &str) -> Option<ToolOutput> {
        let (now, said) = (Instant::now(), entry.output.freshness());
        let window = said.stale_window(allowed, self.lookup.identity.is_shared());
        let limit = self.lookup.gate.limit(entry.expiry.ttl, now);
        let age = entry.age(now);
        if age >= limit.saturating_add(window) {
            return None;
        }
        // the server may have stated an age
        let age = age.saturating_add(said.age.unwrap_or_default());
        let mark = json!({
            "status": CacheStatus::Stale.as_str(),
            "age_ms": u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            "reason": reason,
        });
        entry
            .output
            .with_meta(CACHE_META, &to_raw_value(&mark).ok()?)
            .ok()
    }
}
