//! The config file as it is written: every key, its type and its default.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use callward::cache::StateGroup;
use callward::core::infer::VerbKind;
use callward::limit::ConcurrencyLimitLayer;
use callward::{FreshnessMode, Instances, Profile, Trust, Weight};
use callward_mcp::face::HttpOptions;
use callward_mcp::wire::DEFAULT_MAX_LINE;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::audit::Audit;
use super::limits::{Limits, ShedName};
use super::resilience::{Breaker, Discovery, Hedge, LoopGuard, Retry};
use super::router::Router;
use super::telemetry::Telemetry;
use super::units::{Size, duration, some_duration};
use crate::connections::ConnectionLimits;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    #[serde(deserialize_with = "profile")]
    pub(crate) profile: Profile,
    pub(crate) rules: Rules,
    pub(crate) lexicon: BTreeMap<VerbKind, Vec<String>>,
    #[serde(deserialize_with = "duration")]
    pub(crate) call_deadline: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) startup_timeout: Duration,
    pub(crate) trail: bool,
    pub(crate) http: Http,
    pub(crate) admin: Admin,
    pub(crate) cache: Cache,
    pub(crate) loop_guard: LoopGuard,
    pub(crate) retry: Retry,
    pub(crate) hedge: Hedge,
    pub(crate) limits: Limits,
    pub(crate) breaker: Breaker,
    pub(crate) discovery: Discovery,
    pub(crate) router: Router,
    pub(crate) audit: Audit,
    pub(crate) telemetry: Telemetry,
    pub(crate) servers: BTreeMap<String, Server>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            rules: Rules::default(),
            lexicon: BTreeMap::new(),
            call_deadline: Duration::from_secs(600),
            startup_timeout: Duration::from_secs(30),
            trail: false,
            http: Http::default(),
            admin: Admin::default(),
            cache: Cache::default(),
            loop_guard: LoopGuard::default(),
            retry: Retry::default(),
            hedge: Hedge::default(),
            limits: Limits::default(),
            breaker: Breaker::default(),
            discovery: Discovery::default(),
            router: Router::default(),
            audit: Audit::default(),
            telemetry: Telemetry::default(),
            servers: BTreeMap::new(),
        }
    }
}

/// Reads how hints become a plan: the name of a preset.
fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<Profile, D::Error> {
    let name = String::deserialize(from)?;
    Profile::by_name(&name).ok_or_else(|| Error::unknown_variant(&name, Profile::NAMES))
}

/// How missing hints are concluded from name and description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rules {
    #[default]
    Standard,
    Neurolink,
}

/// `[http]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Http {
    pub(crate) listen: String,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) insecure: bool,
    pub(crate) metrics: bool,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_address: usize,
    pub(crate) max_sessions: usize,
    pub(crate) max_sessions_per_client: usize,
    pub(crate) proxies: Vec<IpAddr>,
    pub(crate) max_bodies: Size,
    pub(crate) max_unread: Size,
    #[serde(deserialize_with = "duration")]
    pub(crate) body_timeout: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) header_timeout: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) write_timeout: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) lame_duck: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) drain: Duration,
}

impl Default for Http {
    fn default() -> Self {
        let ConnectionLimits {
            all,
            per_address,
            proxies,
            unread,
            header,
            write,
        } = ConnectionLimits::default();
        let face = HttpOptions::default();
        Self {
            listen: "127.0.0.1:7420".into(),
            allowed_hosts: ["localhost", "127.0.0.1", "[::1]"].map(Into::into).into(),
            allowed_origins: ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]
                .map(Into::into)
                .into(),
            insecure: false,
            metrics: false,
            max_connections: all,
            max_connections_per_address: per_address,
            max_sessions: face.max_sessions,
            max_sessions_per_client: face.max_sessions_per_client,
            proxies,
            max_bodies: Size(face.max_bodies as u64),
            max_unread: Size(unread as u64),
            body_timeout: face.body_timeout,
            header_timeout: header,
            write_timeout: write,
            lame_duck: Duration::ZERO,
            drain: Duration::from_secs(10),
        }
    }
}

/// `[admin]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Admin {
    pub(crate) listen: Option<String>,
}

/// `[cache]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cache {
    pub(crate) enabled: bool,
    pub(crate) max_bytes: Size,
    pub(crate) max_item_bytes: Size,
    #[serde(deserialize_with = "duration")]
    pub(crate) slow_threshold: Duration,
    pub(crate) idempotent_writes: bool,
    pub(crate) freshness: FreshnessMode,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) ttl: Option<Duration>,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) idempotent_ttl: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub(crate) burst: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) settle: Duration,
    pub(crate) stale_odds: f64,
    pub(crate) partition: Partition,
    pub(crate) report: bool,
    #[serde(deserialize_with = "duration")]
    pub(crate) stale_while_revalidate: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) stale_if_error: Duration,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            enabled: true,
            max_bytes: Size(64 << 20),
            max_item_bytes: Size(1 << 20),
            slow_threshold: Duration::from_millis(500),
            idempotent_writes: true,
            freshness: FreshnessMode::Learned,
            ttl: None,
            idempotent_ttl: None,
            burst: Duration::from_millis(500),
            settle: Duration::from_secs(10),
            stale_odds: 0.01,
            partition: Partition::default(),
            report: false,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
        }
    }
}

/// Who may be served whose results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Partition {
    #[default]
    Principal,
    Shared,
}

/// `[servers.ID]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) set: Option<String>,
    pub(crate) weight: u32,
    pub(crate) categories: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) zone: Option<String>,
    pub(crate) cost_factor: f64,
    pub(crate) trust: Trust,
    pub(crate) prefix: Prefix,
    pub(crate) max_concurrent: usize,
    pub(crate) max_waiting: usize,
    pub(crate) shed: ShedName,
    pub(crate) max_concurrent_per_tool: Option<usize>,
    pub(crate) calls_per_minute: Option<f64>,
    pub(crate) idempotency_keys: Option<bool>,
    pub(crate) instances: Option<Instances>,
    pub(crate) spare: Option<usize>,
    #[serde(deserialize_with = "duration")]
    pub(crate) idle: Duration,
    pub(crate) max_instances: usize,
    pub(crate) reuse: bool,
    pub(crate) era: EraName,
    pub(crate) max_message: Size,
    pub(crate) state: StateGroup,
    #[serde(deserialize_with = "some_duration")]
    pub(crate) ttl: Option<Duration>,
    pub(crate) cache: Option<bool>,
    pub(crate) annotations: Hints,
    pub(crate) tools: BTreeMap<String, Hints>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            url: None,
            headers: BTreeMap::new(),
            set: None,
            weight: Weight::DEFAULT.get(),
            categories: Vec::new(),
            capabilities: Vec::new(),
            zone: None,
            cost_factor: 1.0,
            trust: Trust::default(),
            prefix: Prefix::default(),
            max_concurrent: ConcurrencyLimitLayer::DEFAULT_MAX_IN_FLIGHT,
            max_waiting: ConcurrencyLimitLayer::DEFAULT_MAX_WAITING,
            shed: ShedName::default(),
            max_concurrent_per_tool: None,
            calls_per_minute: None,
            idempotency_keys: None,
            instances: None,
            spare: None,
            idle: Duration::from_secs(300),
            max_instances: 32,
            reuse: false,
            era: EraName::default(),
            max_message: Size(DEFAULT_MAX_LINE as u64),
            state: StateGroup::default(),
            ttl: None,
            cache: None,
            annotations: Hints::new(),
            tools: BTreeMap::new(),
        }
    }
}

/// Hints as written; those of a tool may have `rules`, `reads`, `writes`, `verify_with`,
/// `max_concurrent`, `ttl` and `cache` beside them. Checked one by one, so that each fault is reported at its own line.
pub(crate) type Hints = BTreeMap<String, toml::Value>;

/// Which revisions of the protocol are spoken to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EraName {
    #[default]
    Auto,
    Modern,
    Legacy,
}

/// What stands before a tool's name in what clients see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// The replica set's name.
    #[default]
    Set,
    /// Nothing: `prefix = false`.
    None,
    /// This.
    Named(String),
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NameOrFalse;

        impl Visitor<'_> for NameOrFalse {
            type Value = Prefix;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or `false` for unprefixed tools")
            }

            fn visit_bool<E: Error>(self, on: bool) -> Result<Prefix, E> {
                Ok(if on { Prefix::Set } else { Prefix::None })
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Prefix, E> {
                Ok(Prefix::Named(name.to_owned()))
            }
        }

        from.deserialize_any(NameOrFalse)
    }
}
