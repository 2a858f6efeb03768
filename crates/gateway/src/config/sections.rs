//! The tables of the file: every key, its type and its default. A layer's own settings are its own
//! type; what stands here is what only the gateway knows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callward::approval::ApprovalConfig;
use callward::audit::AuditConfig;
use callward::breaker::BreakerConfig;
use callward::cache::CacheConfig;
use callward::core::human::{duration, parse_duration, show_duration, size};
use callward::core::redact::{self, Redactor};
use callward::core::{Approver, AuditScope, FreshnessMode, words};
use callward::router::RouterConfig;
use callward::{PingConfig, Profile, StackBuilder};
use callward_auth::ProxyConfig;
use callward_auth::tokens::{IssuerConfig, Secret};
use callward_mcp::server::HttpOptions;
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

use super::listen::{AdminAddress, parse_listen};
use super::with_defaults;
use crate::connections::{ConnectionLimits, TlsFiles};
use crate::toolsets;

/// The settings of a layer that can be turned off, and whether it is on by default.
#[derive(Debug, Clone, Copy, Serialize, serde::Deserialize)]
#[serde(default, bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(crate) struct Switch<T, const ON: bool> {
    enabled: bool,
    #[serde(flatten)]
    pub(crate) config: T,
}

impl<T: Default, const ON: bool> Default for Switch<T, ON> {
    fn default() -> Self {
        Self {
            enabled: ON,
            config: T::default(),
        }
    }
}

impl<T: Copy, const ON: bool> Switch<T, ON> {
    /// Returns the settings; `None` if the layer is off.
    pub(crate) fn get(&self) -> Option<T> {
        self.enabled.then_some(self.config)
    }
}

with_defaults! {
    /// `[http]`: the address of the endpoint and who may use it.
    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Http {
        #[serde(deserialize_with = "address")]
        pub(crate) listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7420)),
        pub(crate) allowed_hosts: Vec<String> = ["localhost", "127.0.0.1", "[::1]"].map(Into::into).into(),
        pub(crate) allowed_origins: Vec<String> = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]
            .map(Into::into)
            .into(),
        /// Whether addresses that other machines can reach are allowed.
        pub(crate) insecure: bool,
        /// Whether `/metrics` is served here too.
        pub(crate) metrics: bool,
        #[serde(flatten)]
        pub(crate) connections: ConnectionLimits,
        #[serde(flatten)]
        pub(crate) tls: TlsFiles,
        pub(crate) max_sessions: usize = HttpOptions::default().max_sessions,
        pub(crate) max_sessions_per_client: usize = HttpOptions::default().max_sessions_per_client,
        #[serde(with = "size")]
        pub(crate) max_bodies: u64 = HttpOptions::default().max_bodies as u64,
        #[serde(with = "duration")]
        pub(crate) body_timeout: Duration = HttpOptions::default().body_timeout,
        /// How long calls are accepted after the signal to stop.
        #[serde(with = "duration")]
        pub(crate) lame_duck: Duration,
        #[serde(with = "duration")]
        pub(crate) drain: Duration = Duration::from_secs(10),
    }
}

/// `[auth]`: how the clients of the endpoint are identified.
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Auth {
    pub(crate) keys: KeySource,
    /// The URL of the endpoint as clients know it: what tokens are for.
    pub(crate) resource: Option<String>,
    /// Whose tokens are accepted.
    pub(crate) issuers: Vec<IssuerConfig>,
    /// Which proxies name users.
    pub(crate) proxy: Option<ProxyConfig>,
}

/// Where API keys are, if there are any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(
    untagged,
    expecting = "expected `true`, `false`, or the path of a file"
)]
pub(crate) enum KeySource {
    /// In the state directory, or nowhere.
    Standard(bool),
    File(PathBuf),
}

impl Default for KeySource {
    fn default() -> Self {
        Self::Standard(false)
    }
}

impl KeySource {
    /// Returns `true` if clients show keys.
    pub(crate) fn is_on(&self) -> bool {
        *self != Self::Standard(false)
    }
}

with_defaults! {
    /// `[approvals]`: how long requests for approval are open, and how many there may be.
    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub(crate) struct Asking {
        #[serde(with = "duration")]
        pub(crate) hold: Duration = ApprovalConfig::default().hold,
        #[serde(with = "duration")]
        pub(crate) expires: Duration = ApprovalConfig::default().expires,
        #[serde(with = "duration")]
        pub(crate) cool_off: Duration = ApprovalConfig::default().cool_off,
        /// How many requests of one principal may be pending.
        pub(crate) pending: usize = ApprovalConfig::default().pending_per_principal,
        /// Who approves calls, where no rule says it.
        pub(crate) by: Approver,
        /// What is sent each state of a request.
        pub(crate) webhook: Option<ApprovalWebhook>,
    }
}

/// `[approvals.webhook]`: a service that is sent each state of a request, and may answer.
#[derive(Debug, Clone, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalWebhook {
    pub(crate) url: String,
    /// What messages are signed with, both ways.
    pub(crate) secret: Secret,
}

impl Asking {
    pub(crate) fn layer(&self) -> ApprovalConfig {
        let mut layer = ApprovalConfig::default();
        (layer.hold, layer.expires, layer.cool_off) = (self.hold, self.expires, self.cool_off);
        layer.pending_per_principal = self.pending;
        layer
    }
}

/// `[guardrails]`: rules over arguments and results, and the service that some of them ask.
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Guardrails {
    pub(crate) rules: Vec<callward::guardrail::Rule>,
    pub(crate) webhook: Option<Screening>,
}

/// `[guardrails.webhook]`
#[derive(Debug, Clone, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Screening {
    pub(crate) url: String,
    pub(crate) secret: Secret,
    #[serde(default = "Screening::timeout", with = "duration")]
    pub(crate) timeout: Duration,
    #[serde(default)]
    pub(crate) on_failure: OnFailure,
}

impl Screening {
    const fn timeout() -> Duration {
        Duration::from_secs(1)
    }
}

words! {
    /// What happens to calls and results without an answer of the service.
    OnFailure {
        /// They are refused.
        Closed = "closed",
        /// They pass.
        Open = "open",
    } default Closed
}

/// `[toolsets]`: whether clients choose tools, and where toolsets are kept.
#[derive(Clone, Default, Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Toolsets {
    pub(crate) enabled: bool,
    /// `None` for a file of each config in the state directory.
    pub(crate) path: Option<PathBuf>,
    /// They, once a gateway has read them.
    #[serde(skip)]
    pub(crate) open: Option<Arc<toolsets::Toolsets>>,
}

words! {
    /// What clients list.
    ListingMode {
        /// Their tools.
        All = "all",
        /// A tool that finds theirs, and one that calls them.
        Search = "search",
        /// Their tools, or else those two where the tools have too many tokens.
        Auto = "auto",
    } default All
}

with_defaults! {
    /// `[listing]`
    #[derive(Debug, Clone, Copy, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Listing {
        pub(crate) mode: ListingMode,
        /// The most tokens, as estimated, that `auto` lists.
        pub(crate) max_tokens: usize = 20_000,
    }
}

/// `[admin]`
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Admin {
    /// Where operators ask; `None` for the default address, or a free port if it is taken.
    pub(crate) listen: Option<AdminAddress>,
    /// The names that it answers to, beside those of loopback.
    pub(crate) allowed_hosts: Vec<String>,
}

impl Admin {
    /// Returns the address, if one is set that is no socket.
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        match self.listen {
            Some(AdminAddress::Tcp(address)) => Some(address),
            _ => None,
        }
    }
}

with_defaults! {
    /// `[cache]`
    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Cache {
        #[serde(flatten)]
        pub(crate) layer: CacheConfig,
        pub(crate) freshness: FreshnessMode = FreshnessMode::Learned,
        /// The ceiling of lifetimes; `None` for the profile's.
        #[serde(with = "duration")]
        pub(crate) ttl: Option<Duration>,
        /// How long results of idempotent writes are kept; `None` for the mode's choice.
        #[serde(with = "duration")]
        pub(crate) idempotent_ttl: Option<Duration>,
        /// Whether each result states what the cache did.
        pub(crate) report: bool,
    }
}

/// `[breaker]`: of each tool, and of each server.
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Breaker {
    #[serde(flatten)]
    pub(crate) layer: BreakerConfig,
    pub(crate) server: ServerBreaker,
}

with_defaults! {
    /// `[breaker.server]`: of each server as a whole.
    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct ServerBreaker {
        pub(crate) failures: u32 = BreakerConfig::server().failures,
        #[serde(with = "duration")]
        pub(crate) open_for: Duration = BreakerConfig::server().open_time,
    }
}

impl ServerBreaker {
    pub(crate) fn layer(&self) -> BreakerConfig {
        let mut layer = BreakerConfig::server();
        (layer.failures, layer.open_time) = (self.failures, self.open_for);
        layer
    }
}

with_defaults! {
    /// `[discovery]`: how the tools of servers are listed.
    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Discovery {
        #[serde(with = "duration")]
        pub(crate) timeout: Duration = StackBuilder::LISTING_TIMEOUT,
        pub(crate) refresh: Refresh = Refresh(Some(PRODUCTION)),
        pub(crate) hold_new_tools: bool,
    }
}

/// How often tools are listed again that no server reports as changed; `None`: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refresh(pub(crate) Option<Duration>);

const PRODUCTION: Duration = Duration::from_secs(600);

impl Serialize for Refresh {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(time) => to.serialize_str(&show_duration(time)),
            None => to.serialize_str("off"),
        }
    }
}

impl<'de> Deserialize<'de> for Refresh {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let seconds = |seconds| Ok(Duration::from_secs(seconds));
        let text = String::deserialize(from)?;
        let time = match &*text {
            "off" => return Ok(Self(None)),
            "development" => seconds(30),
            "staging" => seconds(120),
            "production" => Ok(PRODUCTION),
            other => parse_duration(other),
        };
        let time = time.map_err(|fault| {
            D::Error::custom(format!(
                "{fault}; or off, development, staging or production"
            ))
        })?;
        Ok(Self(Some(time)))
    }
}

/// `[router]`
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Router {
    #[serde(flatten)]
    pub(crate) layer: RouterConfig,
    pub(crate) ping: Switch<PingConfig, true>,
}

with_defaults! {
    /// `[audit]`: which calls are recorded, and where.
    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Audit {
        /// `None` if no call is recorded.
        pub(crate) path: Option<PathBuf>,
        pub(crate) record: AuditScope = AuditScope::Mutating,
        pub(crate) open_world_path: Option<PathBuf>,
        pub(crate) redact: Vec<String>,
        pub(crate) key_file: Option<PathBuf>,
        #[serde(flatten)]
        pub(crate) layer: AuditConfig,
    }
}

impl Audit {
    /// Returns the settings of a log at the path.
    pub(crate) fn layer(&self, path: PathBuf) -> AuditConfig {
        let paths = AuditConfig::new(path);
        let mut config = self.layer.clone();
        let open_world = self.open_world_path.clone();
        config.open_world_path = open_world.unwrap_or(paths.open_world_path);
        config.path = paths.path;
        config.redactor = self.redactor(AuditConfig::DEFAULT_MAX_TEXT);
        config
    }

    /// Returns what leaves out secrets of arguments, and cuts texts that are longer.
    pub(crate) fn redactor(&self, max_text: usize) -> Redactor {
        let ours = Redactor::DEFAULT_NAMES.split(' ');
        let names = ours.chain(self.redact.iter().map(String::as_str));
        Redactor::new(names, max_text)
    }
}

with_defaults! {
    /// `[telemetry]`. A key without a value has that of the environment, or the exporter's default.
    #[derive(Clone, Serialize, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Telemetry {
        #[serde(serialize_with = "optional_url")]
        pub(crate) otlp_endpoint: Option<String>,
        #[serde(serialize_with = "names")]
        pub(crate) otlp_headers: BTreeMap<String, String>,
        pub(crate) sampling: Option<f64>,
        pub(crate) service_name: Option<String>,
        pub(crate) baggage: Vec<String>,
        pub(crate) record_arguments: bool,
        pub(crate) record_results: bool,
        pub(crate) redact: Vec<String> = Redactor::DEFAULT_NAMES.split(' ').map(Into::into).collect(),
    }
}

/// The name of a preset.
pub(super) fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<Profile, D::Error> {
    let name = String::deserialize(from)?;
    Profile::by_name(&name).ok_or_else(|| D::Error::unknown_variant(&name, Profile::NAMES))
}

pub(super) fn profile_name<S: Serializer>(profile: &Profile, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(profile.name)
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    parse_listen(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// Shows the names of secrets without their values.
fn names<S: Serializer>(secrets: &BTreeMap<String, String>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(secrets.keys())
}

/// Shows a URL without its secrets.
#[expect(clippy::ref_option, reason = "serde passes references to fields")]
fn optional_url<S: Serializer>(url: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    url.as_deref().map(redact::url).serialize(to)
}

/// Returns a size as this machine counts it.
pub(crate) fn as_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
