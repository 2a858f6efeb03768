//! The settings of the layer, and what makes no sense among them.

use std::time::Duration;

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

/// When a call is answered in its server's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopGuardConfig {
    /// After how many failures in a row. Default: 5.
    pub failures: u32,
    /// How long after the last failure one try is let through. Default: 2 s, so that a call which waits
    /// for something from outside of the gateway is not held back for longer.
    pub wait: Duration,
    /// Failures further apart than this are not in a row. Default: 5 min.
    pub window: Duration,
    /// How many failing calls are remembered, of all sessions together. Default: 4096. When there are
    /// more, those that failed longest ago are forgotten.
    pub capacity: usize,
    /// What becomes of callers without a session. Default: [`WithoutSession::Pass`].
    pub without_session: WithoutSession,
}

/// What becomes of callers without a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WithoutSession {
    /// All calls of one principal count as one session. Right where each principal is one agent.
    ByPrincipal,
    /// Their calls are passed and not counted: a principal may stand for many conversations.
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
            without_session: WithoutSession::default(),
        }
    }
}

impl LoopGuardConfig {
    /// Sets after how many failures in a row a call is answered in its server's place.
    #[must_use]
    pub const fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets how long after the last failure one try is let through.
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

    /// Sets how many failing calls are remembered.
    #[must_use]
    pub const fn with_capacity(mut self, calls: usize) -> Self {
        self.capacity = calls;
        self
    }

    /// Sets what becomes of callers without a session.
    #[must_use]
    pub const fn with_without_session(mut self, choice: WithoutSession) -> Self {
        self.without_session = choice;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if self.failures == 0 {
            return fault(
                "failures",
                "is 0, which would answer every call; use 1 or more",
            );
        }
        if self.wait.is_zero() {
            return fault("wait", "is 0, which would hold no call back");
        }
        if self.wait > LONGEST_WINDOW {
            return fault("wait", "is above 1 day; a call would be held back for ever");
        }
        if self.window.is_zero() {
            return fault("window", "is 0, in which nothing is in a row");
        }
        if self.window > LONGEST_WINDOW {
            return fault(
                "window",
                "is above 1 day; a call would be held back for ever",
            );
        }
        if !(1..=MOST_HELD).contains(&self.capacity) {
            return fault("capacity", "is not between 1 and 1000000");
        }
        Ok(())
    }
}

const LONGEST_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// Each takes about half a KiB.
const MOST_HELD: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
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
