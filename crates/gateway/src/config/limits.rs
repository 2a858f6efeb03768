//! How often, how many at once and how long, as it is written.

use std::fmt;
use std::time::Duration;

use callward::LimitsConfig;
use callward::limit::{Cap, RateLimitConfig, Shed, TimeoutConfig};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

use super::units::{duration, parse_duration, some_duration};

/// `[limits]`: what holds for all servers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    pub(crate) tools: bool,
    pub(crate) per_principal: Option<f64>,
    #[serde(deserialize_with = "duration")]
    pub(crate) burst: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) max_wait: Duration,
    pub(crate) max_keys: usize,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) attempt_timeout: Option<Duration>,
    #[serde(deserialize_with = "cap")]
    pub(crate) progress_cap: Cap,
}

impl Default for Limits {
    fn default() -> Self {
        let LimitsConfig {
            rate,
            timeout,
            attempt_timeout,
            ..
        } = LimitsConfig::default();
        let RateLimitConfig {
            tools,
            per_principal,
            burst,
            max_wait,
            max_keys,
            ..
        } = rate;
        let TimeoutConfig { cap, .. } = timeout;
        Self {
            tools,
            per_principal,
            burst,
            max_wait,
            max_keys,
            attempt_timeout,
            progress_cap: cap,
        }
    }
}

/// Reads how far progress stretches an attempt: a number of times its timeout, or a duration.
fn cap<'de, D: Deserializer<'de>>(from: D) -> Result<Cap, D::Error> {
    struct TimesOrText;

    impl Visitor<'_> for TimesOrText {
        type Value = Cap;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of times the attempt timeout, or a duration such as \"30m\"")
        }

        fn visit_i64<E: Error>(self, times: i64) -> Result<Cap, E> {
            u32::try_from(times)
                .map(Cap::Times)
                .map_err(|_| E::invalid_value(Unexpected::Signed(times), &self))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Cap, E> {
            parse_duration(text).map(Cap::At).map_err(E::custom)
        }
    }

    from.deserialize_any(TimesOrText)
}

/// Who is refused when too many wait for a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShedName {
    #[default]
    Newest,
    Oldest,
}

impl From<ShedName> for Shed {
    fn from(name: ShedName) -> Self {
        match name {
            ShedName::Newest => Self::Newest,
            ShedName::Oldest => Self::Oldest,
        }
    }
}
