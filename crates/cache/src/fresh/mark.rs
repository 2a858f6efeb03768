//! The mark on an answer whose time is over.

use std::time::Duration;

use callward_core::{CACHE_META, CacheStatus, ToolOutput};
use serde::Serialize;

use crate::event::StaleReason;

#[derive(Serialize)]
struct Mark {
    status: &'static str,
    age_ms: u64,
    reason: &'static str,
}

/// Returns the answer with a mark in its `_meta`: that it is stale, how old it is, and why it was
/// given all the same. `None` if it cannot be marked: then it must not be given.
pub(super) fn stale(output: &ToolOutput, age: Duration, reason: StaleReason) -> Option<ToolOutput> {
    // what was old when it came is that much older now
    let age = age.saturating_add(output.freshness().age.unwrap_or_default());
    let mark = Mark {
        status: CacheStatus::Stale.as_str(),
        age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        reason: reason.as_str(),
    };
    let mark = serde_json::value::to_raw_value(&mark).ok()?;
    output.with_meta(CACHE_META, &mark).ok()
}
