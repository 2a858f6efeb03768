//! The settings of the layer.

use std::time::Duration;

use callward_core::{InvalidConfig, WithoutSession};
use serde::{Deserialize, Serialize};

/// When the guard answers a call in its server's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopGuardConfig {
    /// After how many failures in a row. Default: 5.
    pub failures: u32,
    /// Failures further apart than this are not in a row. Default: 5 min.
    #[serde(with = "callward_core::human::duration")]
    pub window: Duration,
    /// How calls without a session count. Default: [`WithoutSession::Pass`].
    pub without_session: WithoutSession,
}

impl Default for LoopGuardConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            window: Duration::from_secs(5 * 60),
            without_session: WithoutSession::default(),
        }
    }
}

impl LoopGuardConfig {
    /// How long after the last failure the guard admits a trial: short, since a call may poll for a
    /// change from outside.
    pub const WAIT: Duration = Duration::from_secs(2);

    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let (field, reason) = match (self.failures, self.window) {
            (0, _) => (
                "failures",
                "is 0, which would answer every call; use 1 or more",
            ),
            (_, Duration::ZERO) => ("window", "is 0, in which nothing is in a row"),
            (_, window) if window > DAY => (
                "window",
                "is above 1 day; a call would be held back for ever",
            ),
            _ => return Ok(()),
        };
        Err(InvalidConfig::new(field, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        let mut config = LoopGuardConfig::default();
        assert_eq!(config.validate(), Ok(()));
        for window in [Duration::ZERO, Duration::MAX] {
            config.window = window;
            assert_eq!(config.validate().unwrap_err().field, "window");
        }
        config.failures = 0;
        assert_eq!(config.validate().unwrap_err().field, "failures");
    }
}
