//! `[breaker]`: the breakers of servers and tools.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::core::human::{duration, optional_duration};
use serde::{Deserialize, Serialize};

/// `[breaker]`: of each server and tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Breaker {
    pub(crate) failures: u32,
    pub(crate) failure_rate: Option<f64>,
    #[serde(with = "optional_duration")]
    pub(crate) slow_after: Option<Duration>,
    pub(crate) slow_rate: Option<f64>,
    #[serde(with = "duration")]
    pub(crate) window: Duration,
    #[serde(with = "duration")]
    pub(crate) open_for: Duration,
    pub(crate) probes: u32,
    pub(crate) server: ServerBreaker,
}

/// `[breaker.server]`: of each server as a whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServerBreaker {
    pub(crate) failures: u32,
    #[serde(with = "duration")]
    pub(crate) open_for: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        let layer = BreakerConfig::default();
        Self {
            failures: layer.failures,
            failure_rate: None,
            slow_after: None,
            slow_rate: None,
            window: layer.window,
            open_for: layer.open_time,
            probes: layer.probes,
            server: ServerBreaker::default(),
        }
    }
}

impl Default for ServerBreaker {
    fn default() -> Self {
        let layer = BreakerConfig::server();
        Self {
            failures: layer.failures,
            open_for: layer.open_time,
        }
    }
}

impl Breaker {
    /// Which share of calls must be slow, if only `slow_after` is given.
    const SLOW_RATE: f64 = 0.5;

    pub(crate) fn layer(&self) -> BreakerConfig {
        let mut config = opening(BreakerConfig::default(), self.failures, self.open_for)
            .with_window(self.window)
            .with_probes(self.probes);
        config.failure_rate = self.failure_rate.map(percent);
        if let Some(after) = self.slow_after {
            let share = self.slow_rate.unwrap_or(Self::SLOW_RATE);
            config = config.with_slow_calls(after, percent(share));
        }
        config
    }
}

impl ServerBreaker {
    pub(crate) fn layer(&self) -> BreakerConfig {
        opening(BreakerConfig::server(), self.failures, self.open_for)
    }
}

fn opening(layer: BreakerConfig, failures: u32, open: Duration) -> BreakerConfig {
    let longest = layer.max_open_time.max(open);
    layer
        .with_failures(failures)
        .with_open_time(open)
        .with_max_open_time(longest)
}

/// Rounds up: a share above 0 is at least 1 %.
fn percent(share: f64) -> u32 {
    let of = |percent: &u32| f64::from(*percent) >= share * 100.0;
    (0..=100).find(of).unwrap_or(100)
}
