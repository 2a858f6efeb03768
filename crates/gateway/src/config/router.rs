//! Which server gets a call and when one is left out, as it is written.

use std::time::Duration;

use callward::router::affinity::{AffinityConfig, AffinityKey, WithoutSession};
use callward::router::{HealthConfig, PingConfig, StrategyName};
use serde::Deserialize;

use super::units::{duration, some_duration};

/// `[router]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Router {
    pub(crate) strategy: StrategyName,
    pub(crate) cost_budget: Option<f64>,
    pub(crate) affinity: Affinity,
    pub(crate) health: Health,
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

/// `[router.health]`: when a server is left out, and how it comes back.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Health {
    pub(crate) faults: u32,
    /// 0 if servers are not compared.
    pub(crate) outlier: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) window: Duration,
    pub(crate) min_calls: u32,
    pub(crate) min_servers: u32,
    pub(crate) max_ejected: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) eject_time: Duration,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) max_eject_time: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub(crate) slow_start: Duration,
    pub(crate) slow_start_floor: u32,
    pub(crate) panic: u32,
    pub(crate) ping: Ping,
}

impl Default for Health {
    fn default() -> Self {
        let HealthConfig {
            faults,
            outlier,
            window,
            min_calls,
            min_servers,
            max_ejected,
            eject_time,
            slow_start,
            slow_start_floor,
            panic,
            ..
        } = HealthConfig::default();
        Self {
            faults,
            outlier: outlier.unwrap_or(0),
            window,
            min_calls,
            min_servers,
            max_ejected,
            eject_time,
            max_eject_time: None,
            slow_start,
            slow_start_floor,
            panic,
            ping: Ping::default(),
        }
    }
}

/// `[router.health.ping]`: how servers are asked whether they are there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ping {
    pub(crate) enabled: bool,
    #[serde(deserialize_with = "duration")]
    pub(crate) interval: Duration,
    pub(crate) jitter: u32,
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Duration,
    pub(crate) fall: u32,
    pub(crate) rise: u32,
}

impl Default for Ping {
    fn default() -> Self {
        let PingConfig {
            interval,
            jitter,
            timeout,
            fall,
            rise,
            ..
        } = PingConfig::default();
        Self {
            enabled: HealthConfig::default().ping.is_some(),
            interval,
            jitter,
            timeout,
            fall,
            rise,
        }
    }
}
