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
