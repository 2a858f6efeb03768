//! How failures are met, as it is written: repeats and breakers.

use std::time::Duration;

use serde::Deserialize;
use tollgate::breaker::BreakerConfig;
use tollgate::retry::{Jitter, RetryConfig};

use super::units::duration;

/// `[retry]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retry {
    pub(crate) max_attempts: u32,
    pub(crate) budget: f64,
    pub(crate) reserve: u32,
    pub(crate) jitter: Jitter,
    #[serde(deserialize_with = "duration")]
    pub(crate) max_pause: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) max_retry_after: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        let RetryConfig {
            max_attempts,
            backoff,
            max_retry_after,
            budget_percent,
            budget_reserve,
            ..
        } = RetryConfig::default();
        Self {
            max_attempts,
            budget: f64::from(budget_percent) / 100.0,
            reserve: budget_reserve,
            jitter: backoff.jitter,
            max_pause: backoff.ceiling,
            max_retry_after,
        }
    }
}

/// `[breaker]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Breaker {
    pub(crate) failures: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) open_for: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        let BreakerConfig {
            failures,
            open_time,
            ..
        } = BreakerConfig::default();
        Self {
            failures,
            open_for: open_time,
        }
    }
}
