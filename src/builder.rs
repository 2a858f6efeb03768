//! From servers and settings to a running stack.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tollgate_breaker::{BreakerConfig, BreakerConfigs, BreakerLayer, BreakerSet};
use tollgate_cache::{CacheConfig, CacheLayer, ScopeRules, ToolScopes};
use tollgate_core::infer::{Lexicon, RuleSet};
use tollgate_core::{InvalidConfig, Profile, ReplicaSetId, ServerId, ToolCall, ToolName};
use tollgate_limit::ConcurrencyLimitLayer;
use tollgate_loopguard::{LoopGuardConfig, LoopGuardLayer};
use tollgate_registry::{Registry, SetOptions};
use tollgate_retry::hedge::{HedgeConfig, HedgeLayer};
use tollgate_retry::{MakeSchedule, RetryConfig, RetryLayer};
use tollgate_router::{Member, Pool, Router, Strategy};
use tollgate_telemetry::{CallSpanLayer, Metrics};

use crate::discovery::DiscoveryConfig;
use crate::explain::Settings;
use crate::leaf::Leaf;
use crate::order::{self, Guarded};
use crate::scan::{Liveness, Scan, Shared};
use crate::scopes;
use crate::server::Server;
use crate::stack::{Known, Stack};

/// A stack that cannot be built, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Two servers of one replica set disagree about something the whole set shares.
    Conflict {
        /// The replica set.
        set: ReplicaSetId,
        /// What they disagree about.
        what: &'static str,
    },
    /// Two servers have the same id.
    DuplicateServer(ServerId),
    /// A layer's settings make no sense.
    Settings(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { set, what } => {
                write!(
                    f,
                    "servers of replica set `{set}` disagree about {what}; give all the same"
                )
            }
            Self::DuplicateServer(id) => write!(f, "two servers are called `{id}`; rename one"),
            Self::Settings(fault) => f.write_str(fault),
        }
    }
}

impl std::error::Error for BuildError {}

/// Collects servers and settings; [`build`](Self::build) starts the stack.
#[derive(Debug, Default)]
#[must_use]
pub struct StackBuilder {
    servers: Vec<Server>,
    profile: Profile,
    rules: RuleSet,
    lexicon: Option<Arc<Lexicon>>,
    cache: CacheConfig,
    loop_guard: LoopGuard,
    retry: RetryConfig,
    schedule: Option<Arc<dyn MakeSchedule>>,
    hedge: Option<HedgeConfig>,
    breakers: BreakerConfigs,
    discovery: DiscoveryConfig,
    strategy: Strategy,
    metrics: Option<Arc<Metrics>>,
    call_deadline: Option<Duration>,
    startup_timeout: Option<Duration>,
}

impl StackBuilder {
    /// Adds a server.
    pub fn server(mut self, server: impl Into<Server>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Sets the preset that turns hints into plans. Default: [`Profile::standard`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the rules that fill gaps in hints. Default: `standard`.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules = rules;
        self
    }

    /// Sets which verbs the `standard` rules know. Default: [`Lexicon::standard`].
    pub fn lexicon(mut self, lexicon: Lexicon) -> Self {
        self.lexicon = Some(Arc::new(lexicon));
        self
    }

    /// Sets how results are cached.
    pub fn cache(mut self, config: CacheConfig) -> Self {
        self.cache = config;
        self
    }

    /// Sets how failures are repeated.
    pub fn retry(mut self, config: RetryConfig) -> Self {
        self.retry = config;
        self
    }

    /// Takes the pauses between attempts from somebody else's schedule, in place of what
    /// [`retry`](Self::retry) says of them. Default: none.
    ///
    /// With the feature `backoff`, any schedule of that crate:
    ///
    /// ```
    /// # #[cfg(feature = "backoff")]
    /// # fn with_the_feature() {
    /// use std::time::Duration;
    /// use tollgate::Stack;
    /// use tollgate::backoff::backoff::exponential::ExponentialBackoffBuilder;
    /// use tollgate::backoff::{TokioClock, cloned};
    ///
    /// let mine = ExponentialBackoffBuilder::<TokioClock>::new()
    ///     .with_initial_interval(Duration::from_millis(200))
    ///     .build();
    /// let builder = Stack::builder().schedule(cloned(mine));
    /// # }
    /// ```
    pub fn schedule(mut self, schedule: impl MakeSchedule) -> Self {
        self.schedule = Some(Arc::new(schedule));
        self
    }

    /// Sets when a session that repeats the same failing call is answered in the server's place, or
    /// with `None` that it never is. Default: after 5 failures in a row.
    pub fn loop_guard(mut self, config: impl Into<Option<LoopGuardConfig>>) -> Self {
        self.loop_guard = LoopGuard(config.into());
        self
    }

    /// Sets when a slow read gets a second attempt at another server, paid from the same budget as
    /// repeats, or with `None` that none does. Default: `None`.
    pub fn hedge(mut self, config: impl Into<Option<HedgeConfig>>) -> Self {
        self.hedge = config.into();
        self
    }

    /// Sets when a failing tool of a server is left alone. Default: [`BreakerConfig::default`], 30 s
    /// after 3 failures in a row.
    pub fn breaker(mut self, config: BreakerConfig) -> Self {
        self.breakers.tool = config;
        self
    }

    /// Sets when a whole server is left alone that cannot be reached. Only connections that cannot be
    /// made or are lost count. Default: [`BreakerConfig::server`], 10 s after 5 failures in a row.
    pub fn server_breaker(mut self, config: BreakerConfig) -> Self {
        self.breakers.server = config;
        self
    }

    /// Sets how servers are asked for their tools, and when one that does not tell is left alone.
    pub fn discovery(mut self, config: DiscoveryConfig) -> Self {
        self.discovery = config;
        self
    }

    /// Sets how servers of a replica set share calls.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Adds metrics. Default: none are taken.
    pub fn metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Sets how long a whole call may take, pauses and repeats included, where the caller sets no
    /// deadline. Default: no limit but the attempts' own timeouts.
    pub fn call_deadline(mut self, limit: Duration) -> Self {
        self.call_deadline = Some(limit);
        self
    }

    /// Sets how long [`build`](Self::build) waits for servers to list their tools. Default: 30 s.
    pub fn startup_timeout(mut self, limit: Duration) -> Self {
        self.startup_timeout = Some(limit);
        self
    }

    /// Starts the stack, and waits until each server has listed its tools, failed to, or used up the
    /// startup timeout. A server that is down does not fail the build: its tools appear when it
    /// comes up.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the settings contradict each other.
    pub async fn build(mut self) -> Result<Stack, BuildError> {
        self.cache.scopes = self.scope_rules()?;
        let registry = Registry::new();
        for (set, options) in self.set_options()? {
            registry.set_options(set, options);
        }
        self.breakers.discovery = self.discovery.breaker;
        for (whose, config) in [
            ("breaker", self.breakers.tool),
            ("breaker of servers", self.breakers.server),
            ("breaker of discovery", self.breakers.discovery),
        ] {
            let named = |fault| BuildError::Settings(format!("{whose}: {fault}"));
            config.validate().map_err(named)?;
        }
        let settings = |fault: InvalidConfig| BuildError::Settings(fault.to_string());
        self.discovery.validate().map_err(settings)?;
        let breakers = BreakerSet::new(self.breakers).map_err(settings)?;
        let retry =
            RetryLayer::new(self.retry).map_err(|fault| BuildError::Settings(fault.to_string()))?;
        let retry = match self.schedule.take() {
            Some(schedule) => retry.with_schedule(move || schedule.schedule()),
            None => retry,
        };
        let hedge = match self.hedge {
            Some(config) => retry.hedge(config),
            None => Ok(HedgeLayer::off()),
        }
        .map_err(|fault| BuildError::Settings(format!("hedge: {fault}")))?;
        let loop_guard = match self.loop_guard.0 {
            Some(config) => LoopGuardLayer::new(config),
            None => Ok(LoopGuardLayer::off()),
        }
        .map_err(|fault| BuildError::Settings(format!("loop guard: {fault}")))?;
        let cache = CacheLayer::new(self.cache.clone());
        let shared = Arc::new(Shared {
            registry,
            breakers,
            cache: cache.handle(),
            loop_guard: loop_guard.clone(),
            hedge: hedge.clone(),
            changed: watch::Sender::new(0),
        });
        shared.follow_cache();

        let mut members: BTreeMap<ReplicaSetId, Vec<Member<Guarded>>> = BTreeMap::new();
        let mut known = Vec::new();
        let mut scans = JoinSet::new();
        let mut settled = Vec::new();
        for server in self.servers {
            let (tell, told) = oneshot::channel();
            let liveness = Arc::new(Mutex::new(Liveness::default()));
            settled.push(told);
            members
                .entry(server.set.clone())
                .or_default()
                .push(member(&server, &shared));
            known.push(Known {
                id: server.server.id().clone(),
                set: server.set.clone(),
                weight: server.weight,
                categories: server.categories.clone(),
                liveness: liveness.clone(),
            });
            let scan = Scan {
                server: server.server,
                set: server.set,
                shared: shared.clone(),
                liveness,
                settled: Some(tell),
                timeout: self.discovery.timeout,
            };
            scans.spawn(scan.run());
        }
        let pool = Arc::new(Pool::new());
        for (set, members) in members {
            pool.set_members(set, members);
        }

        let settings = Settings {
            cache: self.cache,
            max_attempts: self.retry.max_attempts,
            strategy: self.strategy,
            call_deadline: self.call_deadline,
        };
        let call_span = match self.metrics {
            Some(metrics) => CallSpanLayer::new().with_metrics(metrics),
            None => CallSpanLayer::new(),
        };
        let layers = order::assemble(
            call_span,
            cache,
            loop_guard,
            retry,
            hedge,
            Router::new(pool).with_strategy(self.strategy),
        );
        let wait = self.startup_timeout.unwrap_or(Duration::from_secs(30));
        let all = async {
            for told in settled {
                // a scan that ended has nothing more to tell
                let _ = told.await;
            }
        };
        if tokio::time::timeout(wait, all).await.is_err() {
            tracing::warn!(
                ?wait,
                "some servers have not listed their tools yet; going on without"
            );
        }
        let stack = Stack::new(layers, shared, known, settings, scans);
        scopes::warn_of_idle(&stack);
        Ok(stack)
    }

    /// Makes one set of options per replica set of what its servers say.
    fn set_options(&self) -> Result<BTreeMap<ReplicaSetId, SetOptions>, BuildError> {
        let mut ids = HashSet::new();
        let mut all: BTreeMap<ReplicaSetId, SetOptions> = BTreeMap::new();
        for server in &self.servers {
            if !ids.insert(server.server.id().clone()) {
                return Err(BuildError::DuplicateServer(server.server.id().clone()));
            }
            let Some(options) = all.get_mut(&server.set) else {
                let mut options = SetOptions::default();
                options.prefix.clone_from(&server.prefix);
                options.trust = server.trust;
                options.rules = self.rules;
                options.lexicon.clone_from(&self.lexicon);
                options.profile = self.profile.clone();
                options.defaults = server.defaults.clone();
                options.overrides = server.overrides.clone();
                options.refinements = server.refinements.clone();
                options.verify_with = server.verify_with.clone();
                all.insert(server.set.clone(), options);
                continue;
            };
            let conflict = |what| BuildError::Conflict {
                set: server.set.clone(),
                what,
            };
            if options.prefix != server.prefix {
                return Err(conflict("the prefix of their tools"));
            }
            if options.trust != server.trust {
                return Err(conflict("how far they are trusted"));
            }
            if options.defaults != server.defaults {
                return Err(conflict("the default hints of their tools"));
            }
            if !agree(&mut options.overrides, &server.overrides) {
                return Err(conflict("the operator's hints for one tool"));
            }
            if !agree(&mut options.refinements, &server.refinements) {
                return Err(conflict("the rules over one tool's arguments"));
            }
            if !agree(&mut options.verify_with, &server.verify_with) {
                return Err(conflict("what to verify one tool's calls with"));
            }
        }
        Ok(all)
    }

    /// Puts together what the cache's config and the servers say of which state tools touch.
    fn scope_rules(&self) -> Result<ScopeRules, BuildError> {
        let mut said: BTreeMap<&ReplicaSetId, HashMap<ToolName, ToolScopes>> = BTreeMap::new();
        for server in &self.servers {
            if !agree(said.entry(&server.set).or_default(), &server.scopes) {
                return Err(BuildError::Conflict {
                    set: server.set.clone(),
                    what: "which state one tool reads and writes",
                });
            }
        }
        let mut rules = self.cache.scopes.clone();
        for (set, tools) in said {
            for (tool, scopes) in tools {
                rules = rules.with(set.clone(), tool, scopes);
            }
        }
        Ok(rules)
    }
}

/// Whether and when the loop guard answers: unlike other options, by default it does.
#[derive(Debug)]
struct LoopGuard(Option<LoopGuardConfig>);

impl Default for LoopGuard {
    fn default() -> Self {
        Self(Some(LoopGuardConfig::default()))
    }
}

/// Adds what one more server's config says of single tools; says whether it contradicts nothing.
fn agree<T: Clone + PartialEq>(
    taken: &mut HashMap<ToolName, T>,
    said: &HashMap<ToolName, T>,
) -> bool {
    said.iter()
        .all(|(tool, said)| taken.entry(tool.clone()).or_insert_with(|| said.clone()) == said)
}

/// Puts the guards around one server. It counts as healthy for a call if it lists the tool, and its
/// own breaker and the tool's would let the call through.
fn member(server: &Server, shared: &Arc<Shared>) -> Member<Guarded> {
    let id = server.server.id().clone();
    let of_server = BreakerLayer::of_server(&shared.breakers, id.clone());
    let of_tool = BreakerLayer::new(shared.breakers.clone(), id.clone());
    let guarded = order::guard(
        of_server.clone(),
        of_tool.clone(),
        ConcurrencyLimitLayer::new(server.max_concurrent),
        Leaf::new(server.server.clone()),
    );
    let (health_id, health) = (id.clone(), shared.clone());
    Member::new(id, guarded)
        .with_weight(server.weight)
        .with_categories(server.categories.clone())
        .with_health(move |call: &ToolCall| {
            health
                .registry
                .peek()
                .offers(&health_id, call.tool().name())
                && of_server.lets_through(call)
                && of_tool.lets_through(call)
        })
}
