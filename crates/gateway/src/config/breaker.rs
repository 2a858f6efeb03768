//! `[breaker]`: the breakers of servers and tools.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::core::human::duration;
use serde::{Deserialize, Serialize};

/// `[breaker]`: of each tool, and of each server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Breaker {
    #[serde(flatten)]
    pub(crate) layer: BreakerConfig,
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

impl Default for ServerBreaker {
    fn default() -> Self {
        let layer = BreakerConfig::server();
        Self {
            failures: layer.failures,
            open_for: layer.open_time,
        }
    }
}

impl ServerBreaker {
    pub(crate) fn layer(&self) -> BreakerConfig {
        let mut layer = BreakerConfig::server();
        (layer.failures, layer.open_time) = (self.failures, self.open_for);
        layer
    }
}
