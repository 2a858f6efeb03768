//! Statistics.

/// The counters of a log since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditStats {
    /// Records that were written.
    pub written: u64,
    /// Records that were dropped, because the queue was full.
    pub dropped: u64,
    /// Records that were lost, because a file could not be written.
    pub failed: u64,
    /// Calls that waited for the queue.
    pub waited: u64,
    /// Calls that were refused, because the log could not be written.
    pub refused_calls: u64,
    /// Refusals of unknown tools that were counted only, because of their rate.
    pub suppressed: u64,
    /// `true` while a file cannot be written.
    pub is_failing: bool,
}
