//! Why a breaker opened, in words.

use std::fmt;
use std::sync::Arc;

use crate::BreakerConfig;
use crate::state::Trip;

/// Says why a breaker opened. What a server wrote may be long: only its beginning is kept.
pub(crate) fn describe(
    trip: Trip,
    config: &BreakerConfig,
    cause: Option<&dyn fmt::Display>,
) -> Arc<str> {
    let mut cause = cause.map(ToString::to_string).unwrap_or_default();
    if let Some((end, _)) = cause.char_indices().nth(LONGEST_CAUSE) {
        cause.truncate(end);
        cause.push('…');
    }
    let window = config.window;
    let slow = config.slow_calls.map(|slow| slow.after).unwrap_or_default();
    match trip {
        Trip::FailureRate(counts) => format!(
            "{} of {} calls within {window:?} failed, the last: {cause}",
            counts.failed, counts.calls
        ),
        Trip::InARow(1) => format!("a failure: {cause}"),
        Trip::InARow(failures) => format!("{failures} failures in a row, the last: {cause}"),
        Trip::ProbeFailed => format!("a probe failed: {cause}"),
        Trip::ProbeSlow => format!("a probe took {slow:?} or longer"),
        Trip::SlowRate(counts) => format!(
            "{} of {} calls within {window:?} took {slow:?} or longer",
            counts.slow, counts.calls
        ),
    }
    .into()
}

/// In characters.
const LONGEST_CAUSE: usize = 200;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::window::Counts;

    #[test]
    fn each_reason_tells_its_figures() {
        let config = BreakerConfig::default().with_slow_calls(Duration::from_millis(1500), 80);
        let told = |trip| describe(trip, &config, Some(&"refused"));
        let counts = Counts {
            calls: 10,
            failed: 5,
            slow: 8,
        };
        let cases = [
            (
                Trip::FailureRate(counts),
                "5 of 10 calls within 60s failed, the last: refused",
            ),
            (Trip::InARow(1), "a failure: refused"),
            (Trip::InARow(3), "3 failures in a row, the last: refused"),
            (Trip::ProbeFailed, "a probe failed: refused"),
            (Trip::ProbeSlow, "a probe took 1.5s or longer"),
            (
                Trip::SlowRate(counts),
                "8 of 10 calls within 60s took 1.5s or longer",
            ),
        ];
        for (trip, expected) in cases {
            assert_eq!(&*told(trip), expected);
        }
    }

    #[test]
    fn a_long_cause_is_cut_between_characters() {
        let cause = "ü".repeat(5000);
        let told = describe(Trip::InARow(3), &BreakerConfig::default(), Some(&cause));
        assert!(told.starts_with("3 failures in a row, the last: üüü"));
        assert!(told.ends_with("ü…"));
        assert!(told.chars().count() < 250);
    }
}
