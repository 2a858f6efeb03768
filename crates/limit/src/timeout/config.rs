//! The settings of an attempt timeout.

use std::time::Duration;

use callward_core::InvalidConfig;

/// How far progress may stretch an attempt. How long an attempt may take without progress is not
/// set here: its tool's plan says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// How long an attempt may take in all while its server reports progress. Default: ten times
    /// its timeout, which is 10 minutes for a tool that does not say how long it takes.
    pub cap: Cap,
}

/// How long an attempt may take in all while its server reports progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a bound is relative to the timeout, or it is not"
)]
pub enum Cap {
    /// This long. A tool whose timeout is longer keeps that.
    At(Duration),
    /// So many times its timeout. With 1, progress changes nothing.
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
}

impl TimeoutConfig {
    /// Sets how long an attempt may take in all while its server reports progress.
    #[must_use]
    pub const fn with_cap(mut self, cap: Cap) -> Self {
        self.cap = cap;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self.cap {
            Cap::Times(0) => Err(InvalidConfig::new(
                "cap",
                "is 0 times the timeout; 1 is the least, and lets progress change nothing",
            )),
            Cap::At(cap) if cap.is_zero() => Err(InvalidConfig::new(
                "cap",
                "is 0; to let progress change nothing, say 1 times the timeout",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_never_below_the_timeout() {
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
    }

    #[test]
    fn a_cap_of_nothing_is_refused() {
        let with = |cap| TimeoutConfig::default().with_cap(cap).validate();
        assert!(with(Cap::Times(0)).is_err());
        assert!(with(Cap::At(Duration::ZERO)).is_err());
        assert!(with(Cap::Times(1)).is_ok());
    }
}
