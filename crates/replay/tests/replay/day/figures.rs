//! The figures of a day.

use std::time::Duration;

use callward_cache::EvidenceStatus;

/// The figures of one lifetime.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Figures {
    /// Calls of the measured day.
    pub(crate) calls: u64,
    /// The calls that ran.
    pub(crate) executions: u64,
    /// Calls answered with the result of another call, stored or in flight.
    pub(crate) hits: u64,
    /// Hits that differ from what running the call would have returned.
    pub(crate) stale: u64,
    /// The age of the oldest stored answer that was served.
    pub(crate) oldest: Duration,
    /// The evidence of each tool at the beginning of the day, by its name.
    pub(crate) tools: Vec<(String, EvidenceStatus)>,
}
