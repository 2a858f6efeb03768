//! Which server gets a call, and how servers are pinged, as written in the file.

use std::time::Duration;

use callward::PingConfig;
use callward::router::affinity::{AffinityConfig, AffinityKey, WithoutSession};
use callward::router::{RouterConfig, StrategyName};
use serde::Deserialize;

use super::units::duration;

/// `[router]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Router {
    pub(crate) strategy: StrategyName,
    pub(crate) cost_budget: Option<f64>,
    pub(crate) min_available: u32,
    pub(crate) affinity: Affinity,
    pub(crate) ping: Ping,
}

impl Default for Router {
    fn default() -> Self {
        let RouterConfig {
            strategy,
            cost_budget,
            min_available,
            ..
        } = RouterConfig::default();
        Self {
            strategy,
            cost_budget,
            min_available,
            affinity: Affinity::default(),
            ping: Ping::default(),
        }
    }
}

/// `[router.affinity]`: which calls stay together, where the strategy is `affinity`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Affinity {
    pub(crate) by: AffinityKey,
    #[serde(deserialize_with = "duration")]
    pub(crate) ttl: Duration,
    pub(crate) max_keys: usize,
    pub(crate) without_session: WithoutSession,
    pub(crate) fallback: StrategyName,
}

impl Default for Affinity {
    fn default() -> Self {
        let AffinityConfig {
            by,
            ttl,
            max_keys,
            without_session,
            fallback,
            ..
        } = AffinityConfig::default();
        Self {
            by,
            ttl,
            max_keys,
            without_session,
            fallback,
        }
    }
}

/// `[router.ping]`: how servers are pinged.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ping {
    pub(crate) enabled: bool,
    #[serde(deserialize_with = "duration")]
    pub(crate) interval: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Duration,
}

impl Default for Ping {
    fn default() -> Self {
        let PingConfig {
            interval, timeout, ..
        } = PingConfig::default();
        Self {
            enabled: true,
            interval,
            timeout,
        }
    }
}
