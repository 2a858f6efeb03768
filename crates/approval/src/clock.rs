//! The time of requests, in milliseconds since 1970.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Returns the time.
///
/// The wall clock is read once, as requests outlive the process; from then on tokio's clock counts,
/// which tests can pause, and which no one sets back.
#[expect(
    clippy::disallowed_methods,
    reason = "requests expire at a time that a person reads, also after a restart"
)]
pub(crate) fn now_ms() -> u64 {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    static BEGAN: OnceLock<(std::time::Instant, u64)> = OnceLock::new();
    let now = Instant::now().into_std();
    let (began, wall) = BEGAN.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.unwrap_or_default();
        // of earlier times, as of a clock that another test paused before, too
        let since = now.checked_sub(HOUR).map_or(Duration::ZERO, |_| HOUR);
        (now - since, millis(wall.saturating_sub(since)))
    });
    wall.saturating_add(millis(now.saturating_duration_since(*began)))
}

/// Returns a duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a time as RFC 3339 does.
pub(crate) fn shown(ms: u64) -> String {
    // later ones have five digits for the year, which no one can show
    const LAST: u64 = 253_402_300_799_000;
    let time = UNIX_EPOCH + Duration::from_millis(ms.min(LAST));
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_time_can_be_shown() {
        assert_eq!(super::shown(0), "1970-01-01T00:00:00Z");
        assert_eq!(super::shown(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
