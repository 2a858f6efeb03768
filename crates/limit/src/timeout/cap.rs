//! How far progress may stretch an attempt. The timeout without progress is in the tool's plan.

use std::time::Duration;

use callward_core::InvalidConfig;
use callward_core::human::duration;
use serde::{Deserialize, Serialize};

/// How long an attempt with progress may take in all: a duration, or a number of times its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number of times the attempt timeout, or a duration such as \"30m\""
)]
#[expect(clippy::exhaustive_enums, reason = "a cap is absolute or relative")]
pub enum Cap {
    /// This long, and never below the timeout.
    At(#[serde(with = "duration")] Duration),
    /// This many times its timeout. With 1, progress changes nothing.
    Times(u32),
}

impl Default for Cap {
    fn default() -> Self {
        Self::Times(10)
    }
}

impl Cap {
    /// Returns the cap of an attempt with this timeout: never below it.
    #[must_use]
    pub fn of(self, timeout: Duration) -> Duration {
        match self {
            Self::At(cap) => cap.max(timeout),
            Self::Times(times) => timeout.saturating_mul(times).max(timeout),
        }
    }

    /// Checks the cap.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] if it is 0.
    pub fn validate(self) -> Result<(), InvalidConfig> {
        let reason = match self {
            Self::Times(0) => "is 0 times the timeout; use 1 for no extension by progress",
            Self::At(Duration::ZERO) => {
                "is 0; use 1 times the timeout for no extension by progress"
            }
            _ => return Ok(()),
        };
        Err(InvalidConfig::new("progress_cap", reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_never_below_the_timeout_nor_zero() {
        let minute = Duration::from_secs(60);
        let cases = [
            (Cap::default(), minute * 10),
            (Cap::Times(1), minute),
            (Cap::Times(0), minute),
            (Cap::At(minute / 2), minute),
            (Cap::At(minute * 3), minute * 3),
        ];
        for (cap, expected) in cases {
            assert_eq!(cap.of(minute), expected, "{cap:?}");
        }
        assert_eq!(Cap::Times(u32::MAX).of(Duration::MAX), Duration::MAX);
        for (cap, valid) in [
            (Cap::Times(0), false),
            (Cap::At(Duration::ZERO), false),
            (Cap::Times(1), true),
        ] {
            assert_eq!(cap.validate().is_ok(), valid, "{cap:?}");
        }
    }
}
