//! The settings of the cache.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scope::ScopeRules;

/// The settings of the cache. The tool's plan decides which calls are cached and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Whether anything is cached. Default: `true`, with the feature `store`.
    pub enabled: bool,
    /// The bytes that all entries together may take, keys and bookkeeping included. Default: 64
    /// MiB.
    #[serde(with = "callward_core::human::size")]
    pub max_bytes: u64,
    /// The largest body of one result that is kept, in bytes. Default: 1 MiB.
    #[serde(with = "callward_core::human::size")]
    pub max_item_bytes: u64,
    /// Which principals share results. Default: none.
    pub partition: Partition,
    /// Whether the immediate repeat of an idempotent write is answered with the first one's result.
    /// Default: `true`.
    pub idempotent_writes: bool,
    /// How long after its dispatch a call without evidence shares its result: with calls in flight,
    /// and with sessions that have not received it. Only where the lifetime is
    /// [learned](callward_core::Lifetime::Learned). Default: 500
    /// milliseconds.
    #[serde(with = "callward_core::human::duration")]
    pub burst: Duration,
    /// How long after its end a write that may still land keeps its write set out of the cache, at
    /// most: four times the p99 of its tool's writes, but at least a second, if that is shorter.
    /// After that, and until the deadline of the call and its attempt timeout have passed, results
    /// are served within the [`burst`](Self::burst) window only. Below a second counts as a second.
    /// Default: 10 seconds.
    #[serde(with = "callward_core::human::duration")]
    pub settle: Duration,
    /// The largest probability that a repeated call has another answer, of those served by
    /// evidence. Above 0.5 counts as 0.5. Default: 0.01.
    pub stale_odds: f64,
    /// The file that evidence is read from and [saved](crate::CacheHandle::save_evidence) to. If
    /// another process holds it, or it cannot be opened, evidence stays in memory. Default: none.
    #[serde(skip)]
    pub evidence_file: Option<PathBuf>,
    /// Which state tools read and write. Default: each reads and writes all state.
    #[serde(skip)]
    pub scopes: ScopeRules,
    /// How long after its lifetime the result of a read may still be served, marked as stale, while
    /// one call in the background fetches a new one. The server may shorten it.
    /// Default: zero, not at all.
    #[serde(with = "callward_core::human::duration")]
    pub stale_while_revalidate: Duration,
    /// How long after its lifetime the result of a read may still be served, marked as stale, in
    /// place of a failure of the server. The server may shorten it.
    /// Default: zero, not at all.
    #[serde(with = "callward_core::human::duration")]
    pub stale_if_error: Duration,
    /// Seeds the secret under which calls become keys, so that a replay gives the same figures each
    /// time. A client that knows the secret can make two calls share a key: never set it for
    /// untrusted clients. Default: none, which draws a secret when the layer is made.
    #[serde(skip)]
    pub key_seed: Option<u64>,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            enabled: cfg!(feature = "store"),
            max_bytes: 64 << 20,
            max_item_bytes: 1 << 20,
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

/// Which principals share results.
///
/// Results of writes, and of tools whose results are restricted, are never shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Partition {
    /// None: each principal has its own results.
    #[default]
    Principal,
    /// All. Correct only where the tools answer every principal alike.
    Shared,
}
