//! The time of records.

use std::time::SystemTime;

/// Returns the wall-clock time.
#[expect(
    clippy::disallowed_methods,
    reason = "an auditor compares records with those of other systems"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Formats a time as RFC 3339 in UTC, to the microsecond.
pub(crate) fn text(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}
