//! The config: read from TOML, checked as a whole, and turned into types that cannot be wrong.
//!
//! Every problem is reported, with file, line, column and key. What a file leaves out has the
//! default documented in `docs/config.md`.

mod audit;
mod changed;
mod check;
mod error;
mod file;
mod hints;
mod instances;
mod limits;
mod listen;
mod references;
mod resilience;
mod router;
mod rules;
mod scopes;
mod telemetry;
mod units;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callward::audit::AuditConfig;
use callward::breaker::BreakerConfig;
use callward::cache::{StateGroup, ToolScopes};
use callward::core::infer::Lexicon;
use callward::core::redact;
use callward::limit::{ConcurrencyLimitLayer, Shed};
use callward::loopguard::LoopGuardConfig;
use callward::registry::KeptName;
use callward::retry::RetryConfig;
use callward::retry::hedge::HedgeConfig;
use callward::router::RouterConfig;
use callward::{
    Annotations, ArgumentRule, Caching, DiscoveryConfig, FreshnessMode, LimitsConfig, PingConfig,
    Profile, ReplicaSetId, ServerId, ToolName, Trust, Weight,
};
use serde::Deserialize;
use toml::de::DeTable;

pub(crate) use self::changed::{Keys, Sections};
pub(crate) use self::check::parse_listen;
pub(crate) use self::error::ConfigError;
pub(crate) use self::file::{EraName, Partition, Rules};
pub(crate) use self::instances::InstanceConfig;
pub(crate) use self::listen::{AdminAddress, exposed};
pub(crate) use self::references::References;
pub(crate) use self::telemetry::Telemetry;
pub(crate) use self::units::{parse_duration, show_duration, show_size};

use callward_mcp::wire::DEFAULT_MAX_LINE;

use crate::connections::ConnectionLimits;
use crate::report::Reports;

use self::error::{Fault, Source};
use self::file::File;
use self::references::Outside;

/// A config that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) rules: Rules,
    /// The standard verbs with those of the file; none if the file has none.
    pub(crate) lexicon: Option<Lexicon>,
    pub(crate) call_deadline: Duration,
    /// How long the start waits for servers to list their tools.
    pub(crate) startup_timeout: Duration,
    /// Whether each result tells everything that was decided about its call.
    pub(crate) trail: bool,
    pub(crate) http: HttpConfig,
    /// Where operators ask; `None` for the default address, or a free port if it is taken.
    pub(crate) admin: Option<AdminAddress>,
    pub(crate) cache: CacheLimits,
    /// None if no call is answered in its server's place.
    pub(crate) loop_guard: Option<LoopGuardConfig>,
    pub(crate) retry: RetryConfig,
    /// None if no read gets a second attempt.
    pub(crate) hedge: Option<HedgeConfig>,
    pub(crate) limits: LimitsConfig,
    pub(crate) breaker: BreakerConfig,
    pub(crate) server_breaker: BreakerConfig,
    pub(crate) discovery: DiscoveryConfig,
    pub(crate) router: RouterConfig,
    pub(crate) ping: Option<PingConfig>,
    /// None if nothing is written down.
    pub(crate) audit: Option<AuditFile>,
    pub(crate) telemetry: Telemetry,
    pub(crate) servers: Vec<ServerConfig>,
    /// The names that tools had in the last run.
    pub(crate) kept_names: Vec<KeptName>,
    /// What references in the file came to: nothing shows it.
    pub(crate) references: References,
}

/// What is written down about calls, and the file with the key of the log.
#[derive(Debug, Clone)]
pub(crate) struct AuditFile {
    pub(crate) config: AuditConfig,
    pub(crate) key_file: Option<PathBuf>,
}

/// Where and for whom the endpoint listens.
#[derive(Debug, Clone)]
pub(crate) struct HttpConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    /// Whether addresses that other machines can reach are allowed.
    pub(crate) insecure: bool,
    /// Whether `/metrics` is served here too.
    pub(crate) metrics: bool,
    /// Of each listener.
    pub(crate) connections: ConnectionLimits,
    pub(crate) max_sessions: usize,
    pub(crate) max_sessions_per_client: usize,
    /// How many bytes of request bodies are held.
    pub(crate) max_bodies: usize,
    pub(crate) body_timeout: Duration,
    /// How long connections are accepted after the signal to stop.
    pub(crate) lame_duck: Duration,
    pub(crate) drain: Duration,
}

/// What the cache may keep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CacheLimits {
    pub(crate) enabled: bool,
    pub(crate) max_bytes: u64,
    pub(crate) max_item_bytes: u64,
    pub(crate) slow_threshold: Duration,
    pub(crate) idempotent_writes: bool,
    pub(crate) freshness: FreshnessMode,
    /// The ceiling of lifetimes; `None` for the profile's.
    pub(crate) ttl: Option<Duration>,
    /// How long results of idempotent writes are kept; `None` for the mode's choice.
    pub(crate) idempotent_ttl: Option<Duration>,
    pub(crate) burst: Duration,
    pub(crate) settle: Duration,
    pub(crate) stale_odds: f64,
    /// Where evidence is kept; `None` for memory.
    pub(crate) evidence: Option<PathBuf>,
    pub(crate) partition: Partition,
    /// Whether each result tells what the cache did.
    pub(crate) report: bool,
    pub(crate) stale_while_revalidate: Duration,
    pub(crate) stale_if_error: Duration,
}

/// One server, and what the operator says about it.
#[derive(Debug, Clone)]
pub(crate) struct ServerConfig {
    pub(crate) id: ServerId,
    pub(crate) target: TargetConfig,
    pub(crate) set: ReplicaSetId,
    pub(crate) weight: Weight,
    pub(crate) categories: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) zone: Option<String>,
    /// What a call costs here, for each unit of its tool's cost.
    pub(crate) cost_factor: f64,
    pub(crate) trust: Trust,
    pub(crate) prefix: Option<String>,
    pub(crate) limits: ServerLimits,
    /// None if the server itself says whether it takes them.
    pub(crate) idempotency_keys: Option<bool>,
    pub(crate) instances: InstanceConfig,
    pub(crate) era: EraName,
    /// The longest message accepted from the server, in bytes.
    pub(crate) max_message: usize,
    /// Which other sets share its state.
    pub(crate) state: StateGroup,
    pub(crate) caching: Option<Caching>,
    pub(crate) defaults: Annotations,
    pub(crate) tools: BTreeMap<ToolName, ToolConfig>,
}

/// How many calls one server gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerLimits {
    pub(crate) max_concurrent: usize,
    pub(crate) max_waiting: usize,
    pub(crate) shed: Shed,
    pub(crate) max_concurrent_per_tool: Option<usize>,
    pub(crate) calls_per_minute: Option<f64>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_concurrent: ConcurrencyLimitLayer::DEFAULT_MAX_IN_FLIGHT,
            max_waiting: ConcurrencyLimitLayer::DEFAULT_MAX_WAITING,
            shed: Shed::default(),
            max_concurrent_per_tool: None,
            calls_per_minute: None,
        }
    }
}

/// What the operator says about one tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolConfig {
    pub(crate) hints: Annotations,
    /// The first that matches a call's arguments wins.
    pub(crate) rules: Vec<ArgumentRule>,
    /// Which state its calls read and write.
    pub(crate) scopes: ToolScopes,
    /// What to check with what a call did whose answer never came.
    pub(crate) verify_with: Option<ToolName>,
    /// Whether its results are kept, and for how long.
    pub(crate) caching: Option<Caching>,
    /// How many calls of it this server gets at once.
    pub(crate) max_concurrent: Option<usize>,
}

impl ToolConfig {
    /// Returns whether anything is said that holds for the whole replica set.
    pub(crate) fn speaks_for_set(&self) -> bool {
        self.hints != Annotations::default()
            || !self.rules.is_empty()
            || self.scopes != ToolScopes::default()
            || self.verify_with.is_some()
            || self.caching.is_some()
    }
}

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum TargetConfig {
    /// A child process, over its standard input and output.
    Command {
        program: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    /// A streamable HTTP endpoint.
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

/// Without secrets: of environment and headers the names are shown.
impl fmt::Debug for TargetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, args, env } => f
                .debug_struct("Command")
                .field("command", &redact::command(program, args))
                .field("env", &env.keys().collect::<Vec<_>>())
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", &redact::url(url))
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish(),
        }
    }
}

/// How many servers a file has to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Servers {
    /// One or more.
    Some,
    /// Any number.
    Any,
}

impl Config {
    /// Returns what each result tells of its call, asked or not.
    pub(crate) fn reports(&self) -> Reports {
        Reports {
            cache: self.cache.report,
            trail: self.trail,
        }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every problem found.
    pub(crate) fn load(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::unreadable(file, format!("cannot be read: {error}")))?;
        Self::parse(file, &text)
    }

    /// Reads and checks a file that need not name a server: the command line may.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub(crate) fn load_settings(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| ConfigError::unreadable(file, format!("cannot be read: {error}")))?;
        Self::parse_with(file, &text, &|name| std::env::var_os(name), Servers::Any)
    }

    /// Checks a file's text.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every problem found.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(file, text, &|name| std::env::var_os(name), Servers::Some)
    }

    /// Checks a text as [`parse`](Self::parse) does, with an environment that is empty.
    #[cfg(fuzzing)]
    pub(crate) fn parse_alone(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(Path::new("fuzz.toml"), text, &|_| None, Servers::Some)
    }

    fn parse_with(
        file: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<OsString>,
        servers: Servers,
    ) -> Result<Self, ConfigError> {
        let source = Source::new(text);
        let failed = |faults| ConfigError::new(file, faults);
        let mut root =
            DeTable::parse(text).map_err(|error| failed(vec![source.parser_fault(&error)]))?;
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        let outside = Outside { folder, env };
        let references = References::resolve(&mut root, &outside, &source).map_err(failed)?;
        let scrubbed = |faults: Vec<Fault>| {
            let scrub = |fault| references.scrub_fault(fault);
            failed(faults.into_iter().map(scrub).collect())
        };
        let written = File::deserialize(toml::de::Deserializer::from(root))
            .map_err(|error| scrubbed(vec![source.parser_fault(&error)]))?;
        let mut config = check::check(written, servers, &source).map_err(scrubbed)?;
        config.references = references;
        Ok(config)
    }

    /// Returns the defaults, with these servers: what stands in where there is no file.
    pub(crate) fn without_file(servers: Vec<ServerConfig>) -> Self {
        let mut config = check::defaults();
        config.servers = servers;
        config
    }
}

impl ServerConfig {
    /// Describes a child process with the defaults of the file.
    pub(crate) fn command(id: ServerId, program: String, args: Vec<String>) -> Self {
        let target = TargetConfig::Command {
            program,
            args,
            env: BTreeMap::new(),
        };
        Self::with_defaults(id, target)
    }

    /// Describes an endpoint with the defaults of the file.
    pub(crate) fn url(id: ServerId, url: String) -> Self {
        Self::with_defaults(
            id,
            TargetConfig::Http {
                url,
                headers: BTreeMap::new(),
            },
        )
    }

    fn with_defaults(id: ServerId, target: TargetConfig) -> Self {
        let file::Server {
            trust,
            era,
            cost_factor,
            ..
        } = file::Server::default();
        Self {
            set: ReplicaSetId::from(id.clone()),
            id,
            target,
            weight: Weight::DEFAULT,
            categories: Vec::new(),
            capabilities: Vec::new(),
            zone: None,
            cost_factor,
            trust,
            prefix: None,
            limits: ServerLimits::default(),
            idempotency_keys: None,
            instances: InstanceConfig::default(),
            era,
            max_message: DEFAULT_MAX_LINE,
            state: StateGroup::default(),
            caching: None,
            defaults: Annotations::default(),
            tools: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod defaults;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod router_tests;
#[cfg(test)]
mod servers_tests;
#[cfg(test)]
mod telemetry_tests;
#[cfg(test)]
mod tests;
