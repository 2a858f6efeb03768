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
mod resilience;
mod router;
mod rules;
mod scopes;
mod telemetry;
mod units;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate::audit::AuditConfig;
use tollgate::breaker::BreakerConfig;
use tollgate::cache::{StoreKind, ToolScopes};
use tollgate::core::infer::Lexicon;
use tollgate::limit::{AdaptiveConfig, ConcurrencyLimitLayer, Shed};
use tollgate::loopguard::LoopGuardConfig;
use tollgate::retry::RetryConfig;
use tollgate::retry::hedge::HedgeConfig;
use tollgate::router::RouterConfig;
use tollgate::{
    Annotations, ArgumentRule, DiscoveryConfig, LimitsConfig, Profile, ReplicaSetId, ServerId,
    ToolName, Trust, Weight,
};

pub(crate) use self::changed::{Keys, Sections};
pub(crate) use self::check::parse_listen;
pub(crate) use self::error::ConfigError;
pub(crate) use self::file::{EraName, Partition, Rules};
pub(crate) use self::instances::InstanceConfig;
pub(crate) use self::telemetry::Telemetry;
pub(crate) use self::units::{show_duration, show_size};

use crate::report::Reports;

use self::error::Source;
use self::file::File;

/// A config that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) rules: Rules,
    /// The standard verbs with those of the file; none if the file has none.
    pub(crate) lexicon: Option<Lexicon>,
    pub(crate) call_deadline: Duration,
    /// Whether each result tells everything that was decided about its call.
    pub(crate) trail: bool,
    pub(crate) http: HttpConfig,
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
    /// None if nothing is written down.
    pub(crate) audit: Option<AuditFile>,
    pub(crate) telemetry: Telemetry,
    pub(crate) servers: Vec<ServerConfig>,
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
    pub(crate) drain: Duration,
}

/// What the cache may keep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CacheLimits {
    pub(crate) enabled: bool,
    pub(crate) max_bytes: u64,
    pub(crate) max_item_bytes: u64,
    pub(crate) store: StoreKind,
    pub(crate) slow_threshold: Duration,
    pub(crate) idempotent_writes: bool,
    pub(crate) partition: Partition,
    /// Whether each result tells what the cache did.
    pub(crate) report: bool,
    pub(crate) stale_while_revalidate: Duration,
    pub(crate) stale_if_error: Duration,
    /// Of all hits, the share that is checked, from 0.0 to 1.0.
    pub(crate) verify_share: f64,
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
    pub(crate) adaptive: Option<AdaptiveConfig>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_concurrent: ConcurrencyLimitLayer::DEFAULT_MAX_IN_FLIGHT,
            max_waiting: ConcurrencyLimitLayer::DEFAULT_MAX_WAITING,
            shed: Shed::default(),
            max_concurrent_per_tool: None,
            calls_per_minute: None,
            adaptive: None,
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
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
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

    /// Checks a file's text.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every problem found.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let source = Source::new(text);
        let written: File = toml::from_str(text)
            .map_err(|error| ConfigError::new(file, vec![source.parser_fault(&error)]))?;
        check::check(written, &source).map_err(|faults| ConfigError::new(file, faults))
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
