//! What the cache would do with a call, without doing it.

use std::time::Duration;

use callward_core::{CacheStatus, ToolCall};
use tokio::time::Instant;

use crate::key::EntryKind;
use crate::reason::BypassReason;
use crate::route::{Lookup, Route};
use crate::shared::Shared;
use crate::tools::Version;

/// What the cache would do with a call now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachePreview {
    /// The result of the look-up. A read may join an identical one in flight instead.
    pub status: CacheStatus,
    /// Why the call would be sent without a look-up, if so.
    pub bypass: Option<BypassReason>,
    /// The age of the cached answer, if it would be served.
    pub age: Option<Duration>,
    /// The state that the result depends on or that the call may change, by its rule.
    pub scope: Option<String>,
}

impl CachePreview {
    /// Takes the same route as a call, and counts nothing.
    pub(crate) fn of(shared: &Shared, version: &Version, call: &ToolCall) -> Self {
        let now = Instant::now();
        let age = |lookup: &Lookup| -> Result<Option<Duration>, BypassReason> {
            let key = lookup.key(shared, version, call, now)?;
            let entry = shared.store.get(key).filter(|entry| {
                entry.is_fresh(now) && lookup.gate.basis(shared, key, entry, now).is_some()
            });
            Ok(entry.map(|entry| entry.age(now)))
        };
        let route = Route::of(shared, version, call);
        let (status, bypass, age) = match &route {
            Route::Bypass(reason) => (CacheStatus::Bypass, Some(*reason), None),
            Route::Write => (CacheStatus::Invalidated, None, None),
            Route::LookUp(lookup) => match (age(lookup), lookup.kind) {
                (Ok(Some(age)), _) => (CacheStatus::Hit, None, Some(age)),
                (_, EntryKind::Write) => (CacheStatus::Invalidated, None, None),
                (Err(reason), EntryKind::Read) => (CacheStatus::Bypass, Some(reason), None),
                (Ok(None), EntryKind::Read) => (CacheStatus::Miss, None, None),
            },
        };
        let scope = match status {
            CacheStatus::Invalidated => Some(version.access.describe_writes()),
            CacheStatus::Miss => Some(version.access.describe_reads()),
            _ => None,
        };
        Self {
            status,
            bypass,
            age,
            scope,
        }
    }
}
