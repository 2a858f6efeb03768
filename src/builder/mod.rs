//! The builder of a stack: its servers and settings.

mod agree;
mod error;
mod start;

use std::sync::Arc;
use std::time::Duration;

use callward_breaker::BreakerConfig;
use callward_cache::CacheConfig;
use callward_core::infer::{Lexicon, RuleSet};
use callward_core::{FreshnessMode, Profile};
use callward_limit::PrincipalLimitConfig;
use callward_loopguard::LoopGuardConfig;
use callward_registry::{KeptName, ReviewOptions};
use callward_retry::hedge::HedgeConfig;
use callward_retry::{MakeSchedule, RetryConfig};
use callward_router::{RouterConfig, Strategy, StrategyName};

pub use self::error::BuildError;
use crate::limits::LimitsConfig;
use crate::order::{
    ApprovalLayer, ArgumentGuardLayer, AuditLayer, AuthorizeLayer, CallSpanLayer, ResultGuardLayer,
};
use crate::ping::PingConfig;
use crate::plugin::Plugin;
use crate::scan;
use crate::server::Server;

/// Collects servers and settings; [`build`](Self::build) starts the stack.
#[derive(Debug, Default)]
#[must_use]
pub struct StackBuilder {
    servers: Vec<Server>,
    settings: Settings,
    schedule: Option<Arc<dyn MakeSchedule>>,
    strategy: Option<Arc<dyn Strategy>>,
    pub(crate) call_span: CallSpanLayer,
    pub(crate) audit: AuditLayer,
    pub(crate) authorize: AuthorizeLayer,
    pub(crate) approvals: ApprovalLayer,
    pub(crate) argument_guard: ArgumentGuardLayer,
    pub(crate) result_guard: ResultGuardLayer,
    kept_names: Vec<KeptName>,
    review: ReviewOptions,
    plugins: Vec<Plugin>,
}

/// The settings of a stack that outlive its builder: they decide about each server and each call.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) profile: Profile,
    /// The lifetime mode of servers without one of their own.
    pub(crate) freshness: Option<FreshnessMode>,
    pub(crate) rules: RuleSet,
    pub(crate) lexicon: Option<Arc<Lexicon>>,
    pub(crate) cache: CacheConfig,
    pub(crate) loop_guard: OnByDefault<LoopGuardConfig>,
    pub(crate) retry: RetryConfig,
    pub(crate) hedge: Option<HedgeConfig>,
    pub(crate) breaker: BreakerConfig,
    pub(crate) server_breaker: Option<BreakerConfig>,
    pub(crate) limits: LimitsConfig,
    pub(crate) principal_limits: PrincipalLimitConfig,
    pub(crate) router: RouterConfig,
    pub(crate) ping: OnByDefault<PingConfig>,
    pub(crate) call_deadline: Option<Duration>,
    pub(crate) listing_timeout: Option<Duration>,
    pub(crate) startup_timeout: Option<Duration>,
    pub(crate) refresh: Option<Duration>,
}

impl Settings {
    /// Returns how long one listing may take.
    pub(crate) fn listing_timeout(&self) -> Duration {
        let limit = self.listing_timeout.unwrap_or(scan::TIMEOUT);
        limit.max(scan::MIN_TIMEOUT)
    }
}

impl StackBuilder {
    /// How long the listing of a server's tools may take by default.
    pub const LISTING_TIMEOUT: Duration = scan::TIMEOUT;
    /// The shortest timeout of a listing.
    pub const MIN_LISTING_TIMEOUT: Duration = scan::MIN_TIMEOUT;

    /// Adds a server.
    pub fn server(mut self, server: impl Into<Server>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Sets the preset that turns hints into plans. Default: [`Profile::standard`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.settings.profile = profile;
        self
    }

    /// Sets what decides how long results of reads are kept, for each server that says nothing of
    /// its own: see [`Server::freshness`](crate::Server::freshness).
    pub fn freshness(mut self, mode: FreshnessMode) -> Self {
        self.settings.freshness = Some(mode);
        self
    }

    /// Sets the rules that fill gaps in hints. Default: `standard`.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.settings.rules = rules;
        self
    }

    /// Sets which verbs the `standard` rules know. Default: [`Lexicon::standard`].
    pub fn lexicon(mut self, lexicon: Lexicon) -> Self {
        self.settings.lexicon = Some(Arc::new(lexicon));
        self
    }

    /// Sets how results are cached.
    pub fn cache(mut self, config: CacheConfig) -> Self {
        self.settings.cache = config;
        self
    }

    /// Sets how failed calls are retried.
    pub fn retry(mut self, config: RetryConfig) -> Self {
        self.settings.retry = config;
        self
    }

    /// Takes the pauses between attempts from a custom schedule, in place of those of
    /// [`retry`](Self::retry). Default: none.
    ///
    /// With the feature `backoff`, any schedule of that crate:
    ///
    /// ```
    /// # #[cfg(feature = "backoff")]
    /// # fn with_the_feature() {
    /// use std::time::Duration;
    /// use callward::Stack;
    /// use callward::backoff::backoff::exponential::ExponentialBackoffBuilder;
    /// use callward::backoff::{TokioClock, cloned};
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

    /// Sets when the loop guard answers a session that repeats the same failing call; `None` turns
    /// it off. Default: after 5 failures in a row.
    pub fn loop_guard(mut self, config: impl Into<Option<LoopGuardConfig>>) -> Self {
        self.settings.loop_guard = OnByDefault(config.into());
        self
    }

    /// Sets when a slow read gets a second attempt at another server, paid from the retry budget;
    /// `None` turns it off. Default: `None`.
    pub fn hedge(mut self, config: impl Into<Option<HedgeConfig>>) -> Self {
        self.settings.hedge = config.into();
        self
    }

    /// Sets the breakers of tools. Default: [`BreakerConfig::default`], 30 s after 3 failures in a
    /// row.
    pub fn breaker(mut self, config: BreakerConfig) -> Self {
        self.settings.breaker = config;
        self
    }

    /// Sets the breakers of whole servers. Only failed and lost connections count. Default:
    /// [`BreakerConfig::server`], 10 s after 5 failures in a row.
    pub fn server_breaker(mut self, config: BreakerConfig) -> Self {
        self.settings.server_breaker = Some(config);
        self
    }

    /// Sets how long the listing of a server's tools may take, all its pages together; 5 s where
    /// less is given. The value of `MCP_TOOL_TIMEOUT` can be used here, read by
    /// [`parse_tool_timeout`](crate::limit::parse_tool_timeout). Default: 60 s.
    pub fn listing_timeout(mut self, limit: Duration) -> Self {
        self.settings.listing_timeout = Some(limit);
        self
    }

    /// Lists each server's tools again after this time, give or take a tenth; `None`: only when a
    /// server reports a change or its connection is back. Default: `None`.
    pub fn refresh(mut self, every: impl Into<Option<Duration>>) -> Self {
        self.settings.refresh = every.into();
        self
    }

    /// Sets which changes of tools wait for approval, and what was approved in earlier runs; see
    /// [`Stack::approve`](crate::Stack::approve). Default: none waits.
    pub fn review(mut self, options: ReviewOptions) -> Self {
        self.review = options;
        self
    }

    /// Adds a plugin, which runs after those that were added before: see
    /// [`ToolPlugin`](crate::plugin::ToolPlugin). Default: none.
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.plugins.push(plugin);
        self
    }

    /// Sets the limits of rate and time.
    pub fn limits(mut self, config: LimitsConfig) -> Self {
        self.settings.limits = config;
        self
    }

    /// Sets how much each principal may do. What exceeds a limit is refused at once, answers from
    /// the cache included. Lists are made elsewhere: ask [`Stack::admit_list`] before each.
    /// Default: no limits.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use callward::Stack;
    /// use callward::limit::PrincipalLimitConfig;
    ///
    /// let mut limits = PrincipalLimitConfig::default();
    /// limits.generous = true;
    /// limits.destructive_per_minute = NonZeroU32::new(10);
    /// let builder = Stack::builder().principal_limits(limits);
    /// ```
    ///
    /// [`Stack::admit_list`]: crate::Stack::admit_list
    pub fn principal_limits(mut self, config: PrincipalLimitConfig) -> Self {
        self.settings.principal_limits = config;
        self
    }

    /// Sets which server of a replica set gets a call.
    pub fn router(mut self, config: RouterConfig) -> Self {
        self.settings.router = config;
        self
    }

    /// Sets the routing strategy alone; see [`router`](Self::router).
    pub fn strategy(mut self, strategy: StrategyName) -> Self {
        self.settings.router.strategy = strategy;
        self
    }

    /// Spreads calls by a custom strategy, whatever the [`router`](Self::router)'s settings
    /// name. Default: none.
    pub fn custom_strategy(mut self, strategy: impl Strategy) -> Self {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// Sets how servers are pinged; `None` if they are not. Default: [`PingConfig::default`].
    pub fn ping(mut self, config: impl Into<Option<PingConfig>>) -> Self {
        self.settings.ping = OnByDefault(config.into());
        self
    }

    /// Sets how long a whole call may take, pauses and repeats included, where the caller sets no
    /// deadline. Default: no limit but the attempts' own timeouts.
    pub fn call_deadline(mut self, limit: Duration) -> Self {
        self.settings.call_deadline = Some(limit);
        self
    }

    /// Sets the names that tools had in an earlier run: each stays with its tool, and no other tool
    /// gets it. Default: none.
    pub fn kept_names(mut self, names: Vec<KeptName>) -> Self {
        self.kept_names = names;
        self
    }

    /// Sets how long [`build`](Self::build) waits for servers to list their tools. Default: 30 s.
    pub fn startup_timeout(mut self, limit: Duration) -> Self {
        self.settings.startup_timeout = Some(limit);
        self
    }
}

/// An option that is on unless it is turned off.
#[derive(Debug)]
pub(crate) struct OnByDefault<T>(pub(crate) Option<T>);

impl<T: Default> Default for OnByDefault<T> {
    fn default() -> Self {
        Self(Some(T::default()))
    }
}
