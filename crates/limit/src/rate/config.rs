//! The settings of a rate limit.

use std::time::Duration;

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

/// Which rates are limited, and how long a call may wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RateLimitConfig {
    /// Whether the rate in a tool's plan (its `rateLimitHint`) is enforced. Default: yes, with the
    /// feature `rate`.
    pub tools: bool,
    /// How many calls a minute each principal may make. Default: no limit.
    pub per_principal: Option<f64>,
    /// How many calls a minute may pass in all. Default: no limit.
    #[serde(skip)]
    pub in_all: Option<f64>,
    /// How long a call waits at most; zero refuses each call that cannot pass at once. A deadline
    /// may end the wait sooner. Default: 30 s.
    #[serde(with = "callward_core::human::duration")]
    pub max_wait: Duration,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            tools: cfg!(feature = "rate"),
            per_principal: None,
            in_all: None,
            max_wait: Duration::from_secs(30),
        }
    }
}

impl RateLimitConfig {
    /// Sets whether the rates in the tools' plans are enforced.
    #[must_use]
    pub const fn with_tools(mut self, enforced: bool) -> Self {
        self.tools = enforced;
        self
    }

    /// Sets how many calls a minute each principal may make.
    #[must_use]
    pub const fn with_per_principal(mut self, calls_per_minute: Option<f64>) -> Self {
        self.per_principal = calls_per_minute;
        self
    }

    /// Sets how many calls a minute may pass in all.
    #[must_use]
    pub const fn with_in_all(mut self, calls_per_minute: Option<f64>) -> Self {
        self.in_all = calls_per_minute;
        self
    }

    /// Sets how long a call waits at most.
    #[must_use]
    pub const fn with_max_wait(mut self, time: Duration) -> Self {
        self.max_wait = time;
        self
    }

    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        for (field, rate) in [
            ("per_principal", self.per_principal),
            ("in_all", self.in_all),
        ] {
            if rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
                let reason = "is not a number of calls a minute above 0; leave it out for no limit";
                return Err(InvalidConfig::new(field, reason));
            }
            if rate.is_some() && !cfg!(feature = "rate") {
                let reason = "needs the feature `rate` of callward-limit";
                return Err(InvalidConfig::new(field, reason));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        let config = RateLimitConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let cases = [
            (config.with_per_principal(Some(0.0)), "per_principal"),
            (config.with_per_principal(Some(f64::NAN)), "per_principal"),
            (config.with_in_all(Some(-1.0)), "in_all"),
            (config.with_in_all(Some(f64::INFINITY)), "in_all"),
        ];
        for (config, field) in cases {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
