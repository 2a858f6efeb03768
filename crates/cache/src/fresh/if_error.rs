//! Serving the last answer because the server fails.

use callward_core::{CacheStatus, ErrorKind, ToolCall, ToolError, ToolOutput};
use tokio::time::Instant;

use super::mark;
use crate::event::{Happened, StaleReason};
use crate::read::Read;
use crate::shared::{Shared, note};

impl Shared {
    /// Says whether the call may be answered with the last answer, should the server fail.
    pub(crate) fn covers_failures(&self, call: &ToolCall) -> bool {
        !self.config.stale_if_error.is_zero() && !call.purpose().is_background()
    }
}

impl Read {
    /// Returns the last answer, marked, in the place of a failure, if it may be served so. The epochs
    /// in `key` are those of now: nothing was written since the answer was read.
    pub(crate) fn in_place_of(
        &self,
        error: &ToolError,
        key: u128,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let shared = &self.shared;
        if !server_fails(error.kind()) {
            return None;
        }
        let entry = shared.store.get(key)?;
        let window = shared.windows(entry.output(), &self.identity).error;
        let now = Instant::now();
        let age = entry.age(now);
        if age >= self.gate.limit(entry.ttl(), now).saturating_add(window) {
            return None;
        }
        let reason = StaleReason::Failed(error.kind());
        let output = mark::stale(entry.output(), age, reason)?;
        let record = &self.version.record;
        record.counters.rescued.add_one();
        shared.tell(record, || Happened::Stale { age, reason });
        note(call, CacheStatus::Stale);
        Some(output)
    }
}

/// Says whether such a failure is the server's: it cannot be reached, or fails whatever is asked of
/// it. What is wrong with the call, or only asks for patience, is for the caller to know.
const fn server_fails(kind: ErrorKind) -> bool {
    kind.blames_server() || matches!(kind, ErrorKind::BreakerOpen | ErrorKind::NoEligibleServer)
}
