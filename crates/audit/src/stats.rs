//! What became of records.

/// What became of records since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditStats {
    /// Records that were written.
    pub written: u64,
    /// Records that had no place in the queue, and are missing.
    pub dropped: u64,
    /// Records that could not be written, and are missing.
    pub failed: u64,
    /// Calls that waited for a place.
    pub waited: u64,
    /// Calls that were refused, because their record could not have been written.
    pub refused_calls: u64,
    /// Refusals of calls to no tool that were only counted, because there were too many.
    pub suppressed: u64,
    /// A file cannot be written now.
    pub is_failing: bool,
}
