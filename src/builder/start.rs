//! Starts a stack from its settings.

use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_breaker::{BreakerConfig, BreakerSet};
use callward_cache::CacheLayer;
use callward_limit::{PrincipalLimitLayer, RateLimitLayer};
use callward_loopguard::LoopGuardLayer;
use callward_registry::Registry;
use callward_retry::RetryLayer;
use callward_retry::hedge::HedgeLayer;
use callward_router::{Pool, RouteEvent, Router};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::{BuildError, StackBuilder};
use crate::change::Startup;
use crate::observed;
use crate::order::{self, Guarded};
use crate::roster::state_word;
use crate::shared::Shared;
use crate::stack::{Inner, Stack};

impl StackBuilder {
    /// Starts the stack, and waits until each server has listed its tools, failed to, or used up
    /// the startup timeout. A server that is down does not fail the build: its tools appear when it
    /// comes up.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the settings contradict each other.
    pub async fn build(self) -> Result<Stack, BuildError> {
        let (stack, startup) = self.start()?;
        startup.finished().await;
        Ok(stack)
    }

    /// Starts the stack without waiting for its servers. Calls to tools that are not listed yet
    /// fail as unknown; [`Startup::finished`] waits as [`build`](Self::build) does.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the settings contradict each other.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(self) -> Result<(Stack, Startup), BuildError> {
        let mut settings = self.settings;
        settings.limits.validate()?;
        if let Some(timeout) = settings.limits.attempt_timeout {
            settings.profile.attempt_timeout = timeout;
        }
        if let Some(ping) = settings.ping.0 {
            ping.validate().map_err(BuildError::of_the("ping"))?;
        }
        let principals = PrincipalLimitLayer::new(settings.principal_limits);
        let rates = RateLimitLayer::new(settings.limits.rate)?;
        let (tool, server) = (settings.breaker, settings.server_breaker);
        let server = server.unwrap_or_else(BreakerConfig::server);
        for (whose, config) in [("breaker", tool), ("breaker of servers", server)] {
            config.validate().map_err(BuildError::of_the(whose))?;
        }
        let breakers = BreakerSet::new(tool, server)?;
        let mut retry = RetryLayer::new(settings.retry)?;
        if let Some(schedule) = self.schedule {
            retry = retry.with_schedule(move || schedule.schedule());
        }
        let hedge = settings.hedge.map(|config| retry.hedge(config));
        let hedge = hedge.unwrap_or_else(|| Ok(HedgeLayer::off()));
        let hedge = hedge.map_err(BuildError::of_the("hedge"))?;
        let loop_guard = settings.loop_guard.0.map(LoopGuardLayer::new);
        let loop_guard = loop_guard.unwrap_or_else(|| Ok(LoopGuardLayer::off()));
        let loop_guard = loop_guard.map_err(BuildError::of_the("loop guard"))?;
        let cache = CacheLayer::new(settings.cache.clone());
        let registry = Registry::new();
        registry.keep_names(self.kept_names);
        registry.review(self.review);
        let pool = Arc::new(Pool::new());
        send_changes(&breakers, &pool);
        let shared = Arc::new(Shared {
            registry,
            plugins: self.plugins.into(),
            breakers,
            cache: cache.handle(),
            loop_guard: loop_guard.clone(),
            retry: retry.clone(),
            hedge: hedge.clone(),
            changed: watch::Sender::default(),
            events: pool.events().clone(),
            tasks: Mutex::default(),
        });
        observed::publish(&shared, &Handle::current());
        let mut router =
            Router::with_config(pool, &settings.router).map_err(BuildError::of_the("router"))?;
        if let Some(strategy) = self.strategy {
            router = router.with_custom_strategy(strategy);
        }
        #[cfg(all(feature = "auth", feature = "audit"))]
        let authorize = crate::authorized::noting(self.authorize, &self.audit);
        #[cfg(not(all(feature = "auth", feature = "audit")))]
        let authorize = self.authorize;
        #[cfg(all(feature = "approval", feature = "audit"))]
        if let Some(approvals) = self.approvals.approvals() {
            crate::approvals::noting(approvals, &self.audit);
        }
        #[cfg(all(feature = "auth", feature = "approval"))]
        let authorize = match self.approvals.approvals() {
            Some(_) => authorize.with_approvals(),
            None => authorize,
        };
        #[cfg(feature = "auth")]
        let policy = authorize.clone();
        let layers = order::assemble(
            self.call_span,
            self.audit.clone(),
            principals.clone(),
            authorize,
            self.argument_guard.clone(),
            loop_guard,
            self.approvals.clone(),
            cache,
            self.result_guard,
            retry,
            hedge,
            rates.clone(),
            router.clone(),
        );
        let stack = Stack(Arc::new(Inner {
            layers,
            #[cfg(feature = "audit")]
            audit: self.audit,
            #[cfg(feature = "auth")]
            authorize: policy,
            #[cfg(feature = "approval")]
            approvals: self.approvals,
            #[cfg(feature = "guardrail")]
            guardrails: self.argument_guard,
            router,
            shared,
            roster: ArcSwap::default(),
            changing: Mutex::default(),
            settings: Arc::new(settings),
            rates,
            principals,
            runtime: Handle::current(),
        }));
        let startup = stack.start_servers(self.servers)?;
        Ok((stack, startup))
    }
}

/// Sends changes of breakers to the listeners of the pool's events.
fn send_changes(breakers: &BreakerSet, pool: &Arc<Pool<Guarded>>) {
    let pool = Arc::downgrade(pool);
    breakers.on_change(move |change| {
        // a server that was removed has no set
        if let Some(pool) = pool.upgrade()
            && let Some(set) = pool.set_of(&change.server)
        {
            pool.events().send(|| RouteEvent::HealthUpdate {
                set,
                server: change.server,
                tool: change.subject.tool().cloned(),
                from: state_word(change.from),
                to: state_word(change.to),
                reason: change.reason,
            });
        }
    });
}
