//! The mark on a stale answer.

use std::time::Duration;

use callward_core::{CACHE_META, CacheStatus, ToolOutput};
use serde::Serialize;

#[derive(Serialize)]
struct Mark {
    status: &'static str,
    age_ms: u64,
    reason: &'static str,
}

/// Returns the answer with a mark in its `_meta`: that it is stale, its age, and why it is served.
/// `None` if it cannot be marked: then it must not be served.
pub(super) fn stale(
    output: &ToolOutput,
    age: Duration,
    reason: &'static str,
) -> Option<ToolOutput> {
    // the server may have stated an age
    let age = age.saturating_add(output.freshness().age.unwrap_or_default());
    let mark = Mark {
        status: CacheStatus::Stale.as_str(),
        age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        reason,
    };
    let mark = serde_json::value::to_raw_value(&mark).ok()?;
    output.with_meta(CACHE_META, &mark).ok()
}
