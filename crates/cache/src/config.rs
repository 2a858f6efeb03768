//! What an operator may choose about the cache.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::scope::ScopeRules;
use crate::store::MokaStore;

/// What an operator may choose about the cache. Which calls are cached, and for how long, is no
/// choice of this layer: the tool's plan says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Whether anything is cached at all. Off, every call passes untouched. Default: `true`.
    pub enabled: bool,
    /// How many bytes all entries together may take, keys and bookkeeping included.
    /// Default: 64 MiB.
    pub max_bytes: u64,
    /// How many bytes the body of one result may have; a larger one is not kept. Default: 1 MiB.
    pub max_item_bytes: u64,
    /// What the entries are kept in. Default: [`StoreKind::Moka`].
    pub store: StoreKind,
    /// Results that took longer than this are worth more room, in proportion to the time; among all
    /// others only use and size decide. The lean store does not look at it. In configuration:
    /// `slow_threshold_ms`. Default: 500 milliseconds.
    #[serde(rename = "slow_threshold_ms", deserialize_with = "millis")]
    pub slow_threshold: Duration,
    /// Who may be served a result that was computed for somebody else. Default: nobody.
    pub partition: Partition,
    /// Whether the immediate repeat of an idempotent write is answered with the first one's
    /// result. Off, such a write is treated like any other. Default: `true`.
    pub idempotent_writes: bool,
    /// How long after its dispatch a call of which no evidence is known shares its result: with calls
    /// that run meanwhile, and with sessions that have not received it. Only where the lifetime is
    /// [learned](callward_core::Lifetime::Learned). In configuration: `burst_ms`. Default: 500
    /// milliseconds.
    #[serde(rename = "burst_ms", deserialize_with = "millis")]
    pub burst: Duration,
    /// How long after its end a write that may still land keeps what it touched out of the cache, at most:
    /// four times the p99 of its tool's writes, but at least a second, if that is shorter. After that, and
    /// until the deadline of the call and its attempt timeout have passed, results are served within the
    /// [`burst`](Self::burst) window only. Below a second counts as a second. In configuration: `settle_ms`.
    /// Default: 10 seconds.
    #[serde(rename = "settle_ms", deserialize_with = "millis")]
    pub settle: Duration,
    /// The largest probability that a repeated call has another answer, of those served by evidence.
    /// Above 0.5 counts as 0.5. Default: 0.01.
    pub stale_odds: f64,
    /// The file that evidence is read from and [saved](crate::CacheHandle::save_evidence) to. If another
    /// process holds it, or it cannot be opened, evidence stays in memory. Default: none.
    #[serde(skip)]
    pub evidence_file: Option<PathBuf>,
    /// Which state single tools read and write. Default: each touches all state.
    #[serde(skip)]
    pub scopes: ScopeRules,
    /// How long after its lifetime the result of a read may still be served, marked as stale, while
    /// one call in the background fetches a new one. The server may shorten it. In configuration:
    /// `stale_while_revalidate_ms`. Default: zero, not at all.
    #[serde(rename = "stale_while_revalidate_ms", deserialize_with = "millis")]
    pub stale_while_revalidate: Duration,
    /// How long after its lifetime the result of a read may still be served, marked as stale, in the
    /// place of a failure of the server. The server may shorten it. In configuration:
    /// `stale_if_error_ms`. Default: zero, not at all.
    #[serde(rename = "stale_if_error_ms", deserialize_with = "millis")]
    pub stale_if_error: Duration,
    /// Seeds the secret under which calls become keys, so that a replay gives the same figures each
    /// time. Whoever knows the secret can make two calls meet: never set it where arguments come from
    /// strangers. Default: none, which draws a secret when the layer is made.
    #[serde(skip)]
    pub key_seed: Option<u64>,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_bytes: 64 << 20,
            max_item_bytes: 1 << 20,
            store: StoreKind::default(),
            slow_threshold: MokaStore::SLOW_THRESHOLD,
            partition: Partition::Principal,
            idempotent_writes: true,
            burst: Duration::from_millis(500),
            settle: Duration::from_secs(10),
            stale_odds: 0.01,
            evidence_file: None,
            scopes: ScopeRules::default(),
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            key_seed: None,
        }
    }
}

/// Who may be served a result that was computed for somebody else.
///
/// Results of writes, and of tools whose results are restricted, are never shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Partition {
    /// Nobody: each principal has results of its own.
    #[default]
    Principal,
    /// Every principal. Right only where the tools answer everybody alike.
    Shared,
}

/// What entries are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StoreKind {
    /// [`MokaStore`]: looks at what an entry is worth. In configuration: `"moka"`.
    #[default]
    Moka,
    /// [`LeanStore`](crate::LeanStore): a cheaper hit, and no look at the worth. Needs the feature
    /// `lean`. In configuration: `"lean"`.
    #[cfg(feature = "lean")]
    Lean,
}

impl StoreKind {
    /// Returns the word for it in configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Moka => "moka",
            #[cfg(feature = "lean")]
            Self::Lean => "lean",
        }
    }
}

impl<'de> Deserialize<'de> for StoreKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            "moka" => Ok(Self::Moka),
            #[cfg(feature = "lean")]
            "lean" => Ok(Self::Lean),
            #[cfg(not(feature = "lean"))]
            "lean" => Err(Error::custom(
                "this build has no store `lean`: build it with the feature `lean`, or choose `moka`",
            )),
            other => Err(Error::unknown_variant(other, &["moka", "lean"])),
        }
    }
}

/// Reads whole milliseconds.
fn millis<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read_as_milliseconds_and_slips_are_told() {
        let read = |value| serde_json::from_value::<CacheConfig>(value);
        let config = read(json!({
            "stale_while_revalidate_ms": 1500,
            "stale_if_error_ms": 60_000,
            "slow_threshold_ms": 250,
            "settle_ms": 4000,
        }));
        let expected = CacheConfig {
            stale_while_revalidate: Duration::from_millis(1500),
            stale_if_error: Duration::from_secs(60),
            slow_threshold: Duration::from_millis(250),
            settle: Duration::from_secs(4),
            ..CacheConfig::default()
        };
        assert_eq!(config.unwrap(), expected);
        assert_eq!(read(json!({})).unwrap(), CacheConfig::default());
        assert!(read(json!({"stale_if_error": 5})).is_err());
    }

    #[test]
    fn a_store_that_is_not_built_in_is_named_with_the_way_to_it() {
        let read = |store| serde_json::from_value::<StoreKind>(json!(store));
        assert_eq!(read("moka").unwrap(), StoreKind::Moka);
        #[cfg(feature = "lean")]
        assert_eq!(read("lean").unwrap(), StoreKind::Lean);
        #[cfg(not(feature = "lean"))]
        {
            let error = read("lean").unwrap_err().to_string();
            assert!(error.contains("feature `lean`"), "{error}");
        }
        let error = read("redis").unwrap_err().to_string();
        assert!(error.contains("`moka` or `lean`"), "{error}");
    }
}
