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
        for (per_principal, in_all, field) in [
            (None, None, None),
            (Some(0.0), None, Some("per_principal")),
            (Some(f64::NAN), None, Some("per_principal")),
            (None, Some(-1.0), Some("in_all")),
            (Some(1.0), Some(f64::INFINITY), Some("in_all")),
        ] {
            let config = RateLimitConfig {
                per_principal,
                in_all,
                ..RateLimitConfig::default()
            };
            assert_eq!(config.validate().err().map(|fault| fault.field), field);
        }
    }
}
