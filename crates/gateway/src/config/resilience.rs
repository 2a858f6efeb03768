//! How failures are met, as it is written: retries, second attempts, loops, breakers, listing.

use std::time::Duration;

use callward::DiscoveryConfig;
use callward::breaker::BreakerConfig;
use callward::loopguard::{LoopGuardConfig, Sessionless};
use callward::retry::hedge::HedgeConfig;
use callward::retry::{Jitter, RetryConfig};
use serde::Deserialize;

use super::units::{duration, some_duration};

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

/// `[hedge]`: second attempts of slow reads.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hedge {
    pub(crate) enabled: bool,
    pub(crate) percentile: u32,
    pub(crate) min_observations: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) min_delay: Duration,
}

impl Default for Hedge {
    fn default() -> Self {
        let HedgeConfig {
            percentile,
            min_observations,
            min_delay,
            ..
        } = HedgeConfig::default();
        Self {
            enabled: false,
            percentile,
            min_observations,
            min_delay,
        }
    }
}

/// `[loop_guard]`: sessions that repeat the same failing call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LoopGuard {
    pub(crate) enabled: bool,
    pub(crate) failures: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) wait: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) window: Duration,
    pub(crate) capacity: usize,
    pub(crate) without_session: Sessionless,
}

impl Default for LoopGuard {
    fn default() -> Self {
        let LoopGuardConfig {
            failures,
            wait,
            window,
            capacity,
            without_session,
            ..
        } = LoopGuardConfig::default();
        Self {
            enabled: true,
            failures,
            wait,
            window,
            capacity,
            without_session,
        }
    }
}

/// `[breaker]`: of each server and tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Breaker {
    pub(crate) failures: u32,
    pub(crate) failure_rate: Option<f64>,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) slow_after: Option<Duration>,
    pub(crate) slow_rate: Option<f64>,
    #[serde(deserialize_with = "duration")]
    pub(crate) window: Duration,
    pub(crate) min_calls: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) open_for: Duration,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) max_open_for: Option<Duration>,
    pub(crate) probes: u32,
    pub(crate) server: ServerBreaker,
}

impl Default for Breaker {
    fn default() -> Self {
        let BreakerConfig {
            failures,
            window,
            min_calls,
            open_time,
            probes,
            ..
        } = BreakerConfig::default();
        Self {
            failures,
            failure_rate: None,
            slow_after: None,
            slow_rate: None,
            window,
            min_calls,
            open_for: open_time,
            max_open_for: None,
            probes,
            server: ServerBreaker::default(),
        }
    }
}

/// `[breaker.server]`: of each server as a whole.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerBreaker {
    pub(crate) failures: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) open_for: Duration,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) max_open_for: Option<Duration>,
}

impl Default for ServerBreaker {
    fn default() -> Self {
        let BreakerConfig {
            failures,
            open_time,
            ..
        } = BreakerConfig::server();
        Self {
            failures,
            open_for: open_time,
            max_open_for: None,
        }
    }
}

/// `[discovery]`: listing the tools of a server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Discovery {
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Duration,
    pub(crate) failures: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) open_for: Duration,
}

impl Default for Discovery {
    fn default() -> Self {
        let DiscoveryConfig {
            timeout, breaker, ..
        } = DiscoveryConfig::default();
        Self {
            timeout,
            failures: breaker.failures,
            open_for: breaker.open_time,
        }
    }
}
