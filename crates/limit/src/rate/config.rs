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
        let wrong = match self.in_all {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => {
                "is not a number of calls a minute above 0; leave it out for no limit"
            }
            Some(_) if !cfg!(feature = "rate") => "needs the feature `rate` of callward-limit",
            _ => return Ok(()),
        };
        Err(InvalidConfig::new("in_all", wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_above_zero() {
        for (in_all, is_valid) in [
            (None, true),
            (Some(0.5), true),
            (Some(0.0), false),
            (Some(-1.0), false),
            (Some(f64::NAN), false),
            (Some(f64::INFINITY), false),
        ] {
            let config = RateLimitConfig {
                in_all,
                ..RateLimitConfig::default()
            };
            assert_eq!(config.validate().is_ok(), is_valid, "{in_all:?}");
        }
    }
}
