//! From a config to a running stack.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callward::approval::ApprovalLayer;
use callward::auth::Policy;
use callward::auth::rules::Then;
use callward::cache::ToolScopes;
use callward::core::PeerObserver;
use callward::limit::{ConcurrencyLimitLayer, TOOL_TIMEOUT_VAR, parse_tool_timeout};
use callward::{Annotations, LimitsConfig, Server, Stack, StackBuilder, Startup};
use callward_auth::webhook::Webhook;
use callward_mcp::client::{self, CommandSpec, HttpSpec, Target, Upstream, UpstreamOptions};
use tokio::sync::watch;

use crate::builtin::{self, Link};
use crate::config::{self, Config, ListingMode, ServerConfig, ToolRule, caching};
use crate::error::AppError;
use crate::metrics::Telemetry;
use crate::relay::Prefixed;
use crate::{audit, guardrails, telemetry, webhook};

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
    /// The way of the built-in tools to the gateway.
    pub(crate) link: Arc<Link>,
    /// What is sent the requests for approval.
    pub(crate) webhook: Option<webhook::Webhook>,
    /// Completes when the servers have listed their tools.
    pub(crate) startup: Startup,
}

/// The client of a process that serves only one, once it has introduced itself.
pub(crate) type OnlyClient = watch::Receiver<Option<client::OnlyClient>>;

/// Starts a stack over the config's servers, without waiting for them.
///
/// # Errors
///
/// [`AppError`] if the settings contradict each other.
pub(crate) fn stack(
    config: &Config,
    environment: Environment,
    telemetry: &Telemetry,
    only_client: Option<&OnlyClient>,
    approvals: ApprovalLayer,
) -> Result<Running, AppError> {
    let upstream = |server| {
        let observer = Some(telemetry.observer());
        upstream_of(server, environment, observer, only_client.cloned())
    };
    let upstreams = config.servers.iter().map(upstream);
    let upstreams = upstreams.collect::<Result<Vec<_>, _>>()?;
    let servers = config.servers.iter().zip(upstreams.iter().cloned());
    let servers = servers.map(|(server, upstream)| server_of(server, upstream));
    let servers = servers.collect();
    stack_over(config, upstreams, servers, telemetry, approvals)
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
    counts: &Telemetry,
    approvals: ApprovalLayer,
) -> Result<Running, AppError> {
    let (limits, listing_timeout) = timed(config)?;
    let audit = config.audit.path.as_ref();
    let audit = audit
        .map(|path| audit::open(path, &config.audit))
        .transpose()?;
    let webhook = config.authorize_webhook.as_ref().map(Webhook::new);
    let webhook = webhook.transpose().map_err(AppError::Usage)?;
    let asked = config.approvals.as_ref();
    let asked = asked.and_then(|asking| asking.webhook.as_ref());
    let asked = asked.map(webhook::Webhook::new).transpose();
    let asked = asked.map_err(AppError::Usage)?;
    let lexicon = config.lexicon.clone();
    let stack = with(Stack::builder(), lexicon, StackBuilder::lexicon);
    let stack = with(stack, webhook, |stack, it| stack.authorize_by(Arc::new(it)));
    let guardrails = guardrails::open(&config.guardrails)?;
    let stack = with(stack, guardrails, StackBuilder::guardrails);
    let mut kept_names = config.kept_names.clone();
    builtin::free_names(config, &mut kept_names);
    let is_open = config.authorize.is_empty() && config.authorize_default == Then::Allow;
    let rules = match config.listing.mode {
        ListingMode::All => config.authorize.clone(),
        _ if is_open => Vec::new(),
        _ => builtin::allowed_first(&config.authorize)?,
    };
    let stack = with(stack, audit, StackBuilder::audit)
        .approvals(approvals)
        .authorize(Policy::new(rules, config.authorize_default))
        .profile(config.profile.clone())
        .freshness(config.cache.freshness)
        .rules(config.rules)
        .cache(config.cache.layer.clone())
        .loop_guard(config.loop_guard.get())
        .retry(config.retry)
        .hedge(config.hedge.get())
        .breaker(config.breaker.layer)
        .server_breaker(config.breaker.server.layer())
        .listing_timeout(listing_timeout)
        .limits(limits)
        .principal_limits(config.principals)
        .router(config.router.layer.clone())
        .ping(config.router.ping.get())
        .call_deadline(config.call_deadline)
        .startup_timeout(config.startup_timeout)
        .kept_names(kept_names)
        .review(config.review.clone())
        .refresh(config.discovery.refresh.0)
        .sampling(telemetry::sampling(&config.telemetry)?)
        .span_contents(telemetry::contents(&config.telemetry))
        .metrics(counts.metrics.clone());
    let link = Arc::<Link>::default();
    // first, so that its names are
    let stack = with(stack, builtin::server(config, &link)?, StackBuilder::server);
    let stack = servers.into_iter().fold(stack, StackBuilder::server);
    let (stack, startup) = stack.start()?;
    stack.observe(&counts.meter);
    Ok(Running {
        stack,
        upstreams,
        link,
        webhook: asked,
        startup,
    })
}

/// Sets what has a value.
pub(crate) fn with<B, T>(builder: B, value: Option<T>, set: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// Returns how long attempts and listings may take. The environment wins over the file: the client
/// that starts the process knows how long it waits.
///
/// # Errors
///
/// [`AppError::Usage`] if the environment states no valid time.
pub(crate) fn timed(config: &Config) -> Result<(LimitsConfig, Duration), AppError> {
    let (mut limits, mut listing_timeout) = (config.limits, config.discovery.timeout);
    let stated = std::env::var_os(TOOL_TIMEOUT_VAR).unwrap_or_default();
    if let Some(time) = parse_tool_timeout(&stated.to_string_lossy())? {
        limits.attempt_timeout = Some(time);
        listing_timeout = time.max(StackBuilder::MIN_LISTING_TIMEOUT);
    }
    Ok((limits, listing_timeout))
}

/// The command that makes this program a server's supervisor. It is internal, and help does not
/// list it.
pub(crate) const SUPERVISE: &str = "__supervise";

/// The running file, even if another one has replaced it at its path.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Starts to connect to one server.
///
/// # Errors
///
/// [`AppError`] if its endpoint is invalid.
pub(crate) fn upstream_of(
    config: &ServerConfig,
    environment: Environment,
    observer: Option<Arc<dyn PeerObserver>>,
    only_client: Option<OnlyClient>,
) -> Result<Upstream, AppError> {
    let table = &config.table;
    let target = match (&table.command, &table.url) {
        (Some(program), _) => {
            let mut command = CommandSpec::new(program).with_args(&table.args);
            command.secrets.clone_from(&table.secret_args);
            let env = table.env.iter();
            command.env = env
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            command.whole_environment = environment == Environment::Inherited;
            Target::Command(command)
        }
        (None, url) => {
            let endpoint = HttpSpec::new(url.as_deref().unwrap_or_default())?;
            let mut headers = table.headers.iter();
            let spec = headers.try_fold(endpoint, |spec, (name, value)| {
                spec.with_header(name, value)
            })?;
            Target::Http(spec)
        }
    };
    let mut options = UpstreamOptions::default();
    options.observer = observer;
    options.only_client = only_client;
    options.rewrite = match &config.prefix {
        Some(prefix) => Some(Arc::new(Prefixed(prefix.clone()))),
        None => None,
    };
    options.era = table.era;
    options.max_message = config::as_usize(table.max_message);
    let users = table.max_concurrent.saturating_add(table.max_instances);
    options.max_connections = users.saturating_mul(CONNECTIONS_EACH);
    options.idempotency_keys = table.idempotency_keys;
    let spare = table.max_instances.saturating_sub(1).min(1);
    options.spare = table.spare.unwrap_or(spare);
    options.idle = table.idle;
    options.max_instances = table.max_instances;
    // without `/proc` a supervisor would find no processes
    if Path::new(THIS_PROGRAM).exists() {
        options.supervisor = vec![THIS_PROGRAM.into(), SUPERVISE.into()];
    }
    Ok(Upstream::start(config.id.clone(), target, options))
}

/// How many connections a server gets for each call that may run, and for each instance:
/// notifications and an own stream need some too. The limit of calls at once comes first, so that
/// calls wait in its queue.
const CONNECTIONS_EACH: usize = 2;

fn server_of(config: &ServerConfig, upstream: Upstream) -> Server {
    let table = &config.table;
    let server = Server::new(upstream)
        .in_set(config.set.clone())
        .weight(table.weight.get())
        .trust(table.trust)
        .prefix(config.prefix.as_deref())
        .state(table.state.clone())
        .defaults(table.annotations.clone())
        .check_arguments(table.check_arguments)
        .cost_factor(table.cost_factor);
    let mut limit = ConcurrencyLimitLayer::new(table.max_concurrent);
    limit.max_waiting = table.max_waiting;
    limit.shed = table.shed;
    limit.per_tool = table.max_concurrent_per_tool;
    let server = with(server, table.calls_per_minute, Server::calls_per_minute);
    let server = with(server, caching(table.ttl, table.cache), Server::caching);
    let server = with(server, table.zone.as_ref(), Server::zone);
    let server = with(server, table.instances, Server::instances);
    let server = table.categories.iter().fold(server, Server::category);
    let mut server = table.capabilities.iter().fold(server, Server::capability);
    for (tool, said) in &table.tools {
        if said.hints != Annotations::default() {
            server = server.override_tool(tool.clone(), said.hints.clone());
        }
        for ToolRule(rule) in said.rules.iter().flatten() {
            server = server.refine_tool(tool.clone(), rule.clone());
        }
        let mut scopes = ToolScopes::default();
        scopes.reads.clone_from(&said.reads);
        scopes.writes.clone_from(&said.writes);
        if scopes != ToolScopes::default() {
            server = server.tool_scopes(tool.clone(), scopes);
        }
        server = with(server, caching(said.ttl, said.cache), |server, caching| {
            server.tool_caching(tool.clone(), caching)
        });
        server = with(server, said.verify_with.clone(), |server, reader| {
            server.verify_with(tool.clone(), reader)
        });
        server = with(server, said.shown(), |server, shown| {
            server.show_tool(tool.clone(), shown)
        });
        if let Some(permits) = said.max_concurrent {
            limit.tools.insert(tool.clone(), permits.get());
        }
    }
    server.concurrency(limit)
}
