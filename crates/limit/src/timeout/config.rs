//! The settings of an attempt timeout.

use std::time::Duration;

use callward_core::InvalidConfig;

/// How far progress may stretch an attempt. The timeout without progress is in the tool's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// How long an attempt with progress may take in all. Default: ten times its timeout.
    pub cap: Cap,
}

/// How long an attempt with progress may take in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a cap is absolute or relative")]
pub enum Cap {
    /// This long, and never below the timeout.
    At(Duration),
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
}

impl TimeoutConfig {
    /// Sets how long an attempt with progress may take in all.
    #[must_use]
    pub const fn with_cap(mut self, cap: Cap) -> Self {
        self.cap = cap;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self.cap {
            Cap::Times(0) => Err(InvalidConfig::new(
                "cap",
                "is 0 times the timeout; use 1 for no extension by progress",
            )),
            Cap::At(cap) if cap.is_zero() => Err(InvalidConfig::new(
                "cap",
                "is 0; use 1 times the timeout for no extension by progress",
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
    fn a_cap_of_zero_is_invalid() {
        let with = |cap| TimeoutConfig::default().with_cap(cap).validate();
        assert!(with(Cap::Times(0)).is_err());
        assert!(with(Cap::At(Duration::ZERO)).is_err());
        assert!(with(Cap::Times(1)).is_ok());
    }
}
