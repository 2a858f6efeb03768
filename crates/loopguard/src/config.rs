//! The settings of the layer.

use std::time::Duration;

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

/// When the guard answers a call in its server's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopGuardConfig {
    /// After how many failures in a row. Default: 5.
    pub failures: u32,
    /// How long after the last failure a trial is admitted. Default: 2 s, so that a call which
    /// polls for a change from outside is not held back for longer.
    #[serde(skip)]
    pub wait: Duration,
    /// Failures further apart than this are not in a row. Default: 5 min.
    #[serde(with = "callward_core::human::duration")]
    pub window: Duration,
    /// How many failing calls are held, of all sessions together. Default: 4096. With more, those
    /// that failed longest ago are dropped.
    #[serde(skip)]
    pub capacity: usize,
    /// How calls without a session count. Default: [`Sessionless::Pass`].
    pub without_session: Sessionless,
}

/// How calls without a session count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sessionless {
    /// All calls of one principal count as one session: right where each principal is one agent.
    ByPrincipal,
    /// They pass uncounted: a principal may stand for many conversations.
    #[default]
    Pass,
}

impl Default for LoopGuardConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            wait: Duration::from_secs(2),
            window: Duration::from_secs(5 * 60),
            capacity: 4096,
            without_session: Sessionless::default(),
        }
    }
}

impl LoopGuardConfig {
    /// Sets after how many failures in a row the guard answers.
    #[must_use]
    pub const fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets how long after the last failure a trial is admitted.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets how far apart failures in a row may be.
    #[must_use]
    pub const fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets how many failing calls are held.
    #[must_use]
    pub const fn with_capacity(mut self, calls: usize) -> Self {
        self.capacity = calls;
        self
    }

    /// Sets how calls without a session count.
    #[must_use]
    pub const fn with_without_session(mut self, choice: Sessionless) -> Self {
        self.without_session = choice;
        self
    }

    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let day = Duration::from_secs(24 * 60 * 60);
        let too_long = "is above 1 day; a call would be held back for ever";
        let (wait, window) = (self.wait, self.window);
        let held = (1..=1_000_000).contains(&self.capacity);
        let checks = [
            (
                self.failures > 0,
                "failures",
                "is 0, which would answer every call; use 1 or more",
            ),
            (
                !wait.is_zero(),
                "wait",
                "is 0, which would hold no call back",
            ),
            (wait <= day, "wait", too_long),
            (
                !window.is_zero(),
                "window",
                "is 0, in which nothing is in a row",
            ),
            (window <= day, "window", too_long),
            // each takes about half a KiB
            (held, "capacity", "is not between 1 and 1000000"),
        ];
        match checks.into_iter().find(|(valid, ..)| !valid) {
            Some((_, field, reason)) => Err(InvalidConfig::new(field, reason)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        let config = LoopGuardConfig::default();
        assert_eq!(config.validate(), Ok(()));
        for (config, field) in [
            (config.with_failures(0), "failures"),
            (config.with_window(Duration::ZERO), "window"),
            (config.with_window(Duration::MAX), "window"),
            (config.with_wait(Duration::ZERO), "wait"),
            (config.with_wait(Duration::MAX), "wait"),
            (config.with_capacity(0), "capacity"),
            (config.with_capacity(usize::MAX), "capacity"),
        ] {
            assert_eq!(config.validate().map_err(|fault| fault.field()), Err(field));
        }
    }
}
