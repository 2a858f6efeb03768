//! Serving the last answer because the server fails.

use callward_core::{CacheStatus, ErrorKind, ToolCall, ToolError, ToolOutput};
use tokio::time::Instant;

use super::mark;
use crate::read::Read;
use crate::shared::{Shared, note};

impl Shared {
    /// Returns `true` if the call may be answered with the last answer, should the server fail.
    pub(crate) fn covers_failures(&self, call: &ToolCall) -> bool {
        !self.config.stale_if_error.is_zero() && !call.purpose.is_background()
    }
}

impl Read {
    /// Returns the last answer, marked, in place of a failure, if it may be served so. The epochs
    /// in `key` are the current ones: nothing was written since the answer was read.
    pub(crate) fn in_place_of(
        &self,
        error: &ToolError,
        key: u128,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let (shared, lookup) = (&self.shared, &self.lookup);
        if !server_fails(error.kind()) {
            return None;
        }
        let entry = shared.store.get(key)?;
        let window = shared.error_window(&entry.output().freshness(), &lookup.identity);
        let now = Instant::now();
        let age = entry.age(now);
        if age >= lookup.gate.limit(entry.ttl(), now).saturating_add(window) {
            return None;
        }
        let output = mark::stale(entry.output(), age, error.kind().as_str())?;
        self.version.record.count(|counts| counts.rescued += 1);
        note(call, CacheStatus::Stale);
        Some(output)
    }
}

/// Returns `true` if the server cannot be reached, or fails whatever the call is. A fault of the
/// call, or a request to come later, is reported to the caller.
const fn server_fails(kind: ErrorKind) -> bool {
    kind.blames_server() || matches!(kind, ErrorKind::BreakerOpen | ErrorKind::NoEligibleServer)
}
