//! From a config to a running stack.

use std::path::Path;
use std::sync::Arc;

use callward::cache::{CacheConfig, ToolScopes};
use callward::core::PeerObserver;
use callward::limit::{TOOL_TIMEOUT_VAR, parse_tool_timeout};
use callward::{
    Annotations, DiscoveryConfig, LimitsConfig, RuleSet, Server, Stack, StackBuilder, Startup,
};
use callward_mcp::upstream::{CommandSpec, EraChoice, HttpSpec, Target, Upstream};

use crate::audit;
use crate::config::{Config, EraName, Partition, Rules, ServerConfig, ServerLimits, TargetConfig};
use crate::error::AppError;
use crate::metrics::Telemetry;
use crate::telemetry;

/// Whether children inherit the environment of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Environment {
    /// Only what programs need to find their files, and what the config adds.
    Small,
    /// All of it: the command line's own child.
    Inherited,
}

/// A running stack, and the servers behind it.
pub(crate) struct Running {
    pub(crate) stack: Stack,
    pub(crate) upstreams: Vec<Upstream>,
    /// Ends when the servers have listed their tools.
    pub(crate) startup: Startup,
}

/// Starts a stack over the config's servers, without waiting for them.
///
/// # Errors
///
/// [`AppError`] if the settings contradict each other.
pub(crate) fn stack(
    config: &Config,
    environment: Environment,
    telemetry: &Telemetry,
) -> Result<Running, AppError> {
    let mut upstreams = Vec::new();
    let mut servers = Vec::new();
    for server in &config.servers {
        let upstream = upstream_of(server, environment, Some(telemetry.observer()))?;
        servers.push(server_of(server, upstream.clone()));
        upstreams.push(upstream);
    }
    stack_over(config, upstreams, servers, telemetry)
}

/// Starts a stack with the config's settings over other servers, without waiting for them.
///
/// # Errors
///
/// [`AppError`] if the settings contradict each other.
pub(crate) fn stack_over(
    config: &Config,
    upstreams: Vec<Upstream>,
    servers: Vec<Server>,
    telemetry: &Telemetry,
) -> Result<Running, AppError> {
    let stack = settings(config, telemetry)?;
    let (stack, startup) = servers
        .into_iter()
        .fold(stack, StackBuilder::server)
        .start()?;
    telemetry.observe(&stack);
    Ok(Running {
        stack,
        upstreams,
        startup,
    })
}

fn settings(config: &Config, counts: &Telemetry) -> Result<StackBuilder, AppError> {
    let Timed { limits, discovery } = timed(config)?;
    let stack = match &config.lexicon {
        Some(lexicon) => Stack::builder().lexicon(lexicon.clone()),
        None => Stack::builder(),
    };
    let stack = match &config.audit {
        Some(file) => stack.audit(audit::open(file)?),
        None => stack,
    };
    Ok(stack
        .profile(config.profile.clone())
        .freshness(config.cache.freshness)
        .rules(rule_set(config.rules))
        .cache(cache(config))
        .loop_guard(config.loop_guard)
        .retry(config.retry)
        .hedge(config.hedge)
        .breaker(config.breaker)
        .server_breaker(config.server_breaker)
        .discovery(discovery)
        .limits(limits)
        .router(config.router.clone())
        .ping(config.ping)
        .call_deadline(config.call_deadline)
        .startup_timeout(config.startup_timeout)
        .kept_names(config.kept_names.clone())
        .sampling(telemetry::sampling(&config.telemetry)?)
        .span_contents(telemetry::contents(&config.telemetry))
        .metrics(Arc::clone(counts.metrics())))
}

/// The settings that the environment has a say in.
pub(crate) struct Timed {
    pub(crate) limits: LimitsConfig,
    pub(crate) discovery: DiscoveryConfig,
}

/// Returns how long attempts and listings may take. What the environment says beats the file:
/// whoever starts the process for a client knows how long that client waits.
///
/// # Errors
///
/// [`AppError::Usage`] if the environment states a time that is none.
pub(crate) fn timed(config: &Config) -> Result<Timed, AppError> {
    let mut timed = Timed {
        limits: config.limits,
        discovery: config.discovery,
    };
    let Some(stated) = std::env::var_os(TOOL_TIMEOUT_VAR) else {
        return Ok(timed);
    };
    let stated = parse_tool_timeout(&stated.to_string_lossy())
        .map_err(|fault| AppError::Usage(fault.to_string()))?;
    if let Some(time) = stated {
        timed.limits.attempt_timeout = Some(time);
        timed.discovery = timed.discovery.with_timeout(time);
    }
    Ok(timed)
}

/// Returns the rule set that a config names.
pub(crate) const fn rule_set(rules: Rules) -> RuleSet {
    match rules {
        Rules::Standard => RuleSet::Standard,
        Rules::Neurolink => RuleSet::Neurolink,
    }
}

fn cache(config: &Config) -> CacheConfig {
    let mut cache = CacheConfig::default();
    cache.enabled = config.cache.enabled;
    cache.max_bytes = config.cache.max_bytes;
    cache.max_item_bytes = config.cache.max_item_bytes;
    cache.slow_threshold = config.cache.slow_threshold;
    cache.idempotent_writes = config.cache.idempotent_writes;
    cache.burst = config.cache.burst;
    cache.settle = config.cache.settle;
    cache.stale_odds = config.cache.stale_odds;
    cache.evidence_file.clone_from(&config.cache.evidence);
    cache.stale_while_revalidate = config.cache.stale_while_revalidate;
    cache.stale_if_error = config.cache.stale_if_error;
    cache.partition = match config.cache.partition {
        Partition::Principal => callward::cache::Partition::Principal,
        Partition::Shared => callward::cache::Partition::Shared,
    };
    cache
}

/// The command that makes this program a server's supervisor. It is not for people, and help does not
/// list it.
pub(crate) const SUPERVISE: &str = "__supervise";

/// The file that runs, also after another one has taken its path.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Starts to connect to one server.
///
/// # Errors
///
/// [`AppError`] if its endpoint is none.
pub(crate) fn upstream_of(
    config: &ServerConfig,
    environment: Environment,
    observer: Option<Arc<dyn PeerObserver>>,
) -> Result<Upstream, AppError> {
    let target = match &config.target {
        TargetConfig::Command { program, args, env } => {
            let mut command = CommandSpec::new(program).with_args(args);
            for (name, value) in env {
                command = command.with_env(name, value);
            }
            if environment == Environment::Inherited {
                command = command.with_whole_environment();
            }
            Target::Command(command)
        }
        TargetConfig::Http { url, headers } => Target::Http(endpoint(url, headers)?),
    };
    let upstream = Upstream::builder(config.id.clone(), target).era(match config.era {
        EraName::Auto => EraChoice::Auto,
        EraName::Modern => EraChoice::Modern,
        EraName::Legacy => EraChoice::Legacy,
    });
    let upstream = upstream
        .max_message(config.max_message)
        .max_connections(connections(config));
    // without `/proc` a supervisor would find no processes
    let upstream = match Path::new(THIS_PROGRAM).exists() {
        true => upstream.supervisor([THIS_PROGRAM, SUPERVISE]),
        false => upstream,
    };
    let upstream = match config.idempotency_keys {
        Some(send) => upstream.idempotency_keys(send),
        None => upstream,
    };
    let upstream = match observer {
        Some(observer) => upstream.observer(observer),
        None => upstream,
    };
    Ok(config.instances.apply(upstream).start())
}

/// How many connections a server gets for each call that may run, and for each instance: what it is told
/// beside calls, and a stream of its own, need some too.
const CONNECTIONS_EACH: usize = 2;

/// Returns how many connections there may be to a server. The limit of calls at once comes first, so that
/// calls wait in its queue.
fn connections(config: &ServerConfig) -> usize {
    let limits = &config.limits;
    let users = limits.max_concurrent.saturating_add(config.instances.max);
    users.saturating_mul(CONNECTIONS_EACH)
}

fn server_of(config: &ServerConfig, upstream: Upstream) -> Server {
    let server = Server::new(upstream)
        .in_set(config.set.clone())
        .weight(config.weight.get())
        .trust(config.trust)
        .prefix(config.prefix.as_deref())
        .state(config.state.clone())
        .defaults(config.defaults.clone());
    let server = match config.caching {
        Some(caching) => server.caching(caching),
        None => server,
    };
    let mut server = limited(server, &config.limits);
    for category in &config.categories {
        server = server.category(category);
    }
    for capability in &config.capabilities {
        server = server.capability(capability);
    }
    if let Some(zone) = &config.zone {
        server = server.zone(zone);
    }
    server = server.cost_factor(config.cost_factor);
    if let Some(mode) = config.instances.mode {
        server = server.instances(mode);
    }
    for (tool, said) in &config.tools {
        if said.hints != Annotations::default() {
            server = server.override_tool(tool.clone(), said.hints.clone());
        }
        for rule in &said.rules {
            server = server.refine_tool(tool.clone(), rule.clone());
        }
        if said.scopes != ToolScopes::default() {
            server = server.tool_scopes(tool.clone(), said.scopes.clone());
        }
        if let Some(caching) = said.caching {
            server = server.tool_caching(tool.clone(), caching);
        }
        if let Some(reader) = &said.verify_with {
            server = server.verify_with(tool.clone(), reader.clone());
        }
        if let Some(places) = said.max_concurrent {
            server = server.max_concurrent_of(tool.clone(), places);
        }
    }
    server
}

fn limited(server: Server, limits: &ServerLimits) -> Server {
    let mut server = server
        .max_concurrent(limits.max_concurrent)
        .max_waiting(limits.max_waiting)
        .shed(limits.shed);
    if let Some(places) = limits.max_concurrent_per_tool {
        server = server.max_concurrent_per_tool(places);
    }
    if let Some(calls) = limits.calls_per_minute {
        server = server.calls_per_minute(calls);
    }
    server
}

fn endpoint(
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HttpSpec, AppError> {
    let unusable =
        |error: callward_mcp::upstream::InvalidHttpSpec| AppError::Usage(error.to_string());
    let mut spec = HttpSpec::new(url).map_err(unusable)?;
    for (name, value) in headers {
        spec = spec.with_header(name, value).map_err(unusable)?;
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use callward::Tools;
    use callward::limit::Shed;

    use super::*;

    #[test]
    fn every_limit_of_a_server_reaches_it() {
        let limits = ServerLimits {
            max_concurrent: 11,
            max_waiting: 12,
            shed: Shed::Oldest,
            max_concurrent_per_tool: Some(13),
            calls_per_minute: Some(14.0),
        };
        let server = limited(Server::new(Tools::new("a").unwrap()), &limits);
        let told = format!("{server:?}");
        for part in [
            "max_concurrent: 11",
            "max_waiting: 12",
            "Oldest",
            "Some(13)",
            "Some(14.0)",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}
