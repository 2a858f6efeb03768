//! From settings to a running stack.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tollgate_breaker::{BreakerLayer, BreakerSet};
use tollgate_cache::CacheLayer;
use tollgate_core::{ReplicaSetId, ToolCall, Weight};
use tollgate_limit::RateLimitLayer;
use tollgate_loopguard::LoopGuardLayer;
use tollgate_registry::Registry;
use tollgate_retry::RetryLayer;
use tollgate_retry::hedge::HedgeLayer;
use tollgate_router::{Member, Pool, Router, Unfit};
use tollgate_telemetry::CallSpanLayer;

use super::{BuildError, StackBuilder};
use crate::explain::Settings;
use crate::herald::Herald;
use crate::leaf::Leaf;
use crate::limits::{Handles, LimitsConfig, ServerHandles, ServerLayers};
use crate::order::{self, Guarded};
use crate::ping::Pinger;
use crate::scan::{Liveness, Scan, Shared};
use crate::scopes;
use crate::server::Server;
use crate::stack::{Known, Stack};

impl StackBuilder {
    /// Starts the stack, and waits until each server has listed its tools, failed to, or used up the
    /// startup timeout. A server that is down does not fail the build: its tools appear when it
    /// comes up.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the settings contradict each other.
    pub async fn build(mut self) -> Result<Stack, BuildError> {
        self.cache.scopes = self.scope_rules()?;
        self.limits.validate()?;
        if let Some(timeout) = self.limits.attempt_timeout {
            self.profile.attempt_timeout = timeout;
        }
        let rate = RateLimitLayer::new(self.limits.rate)?;
        let mut limits = Handles {
            rates: rate.limits().clone(),
            servers: Vec::new(),
        };
        let registry = Registry::new();
        for (set, options) in self.set_options()? {
            registry.set_options(set, options);
        }
        let breakers = self.breaker_set()?;
        let retry = RetryLayer::new(self.retry)?;
        let retry = match self.schedule.take() {
            Some(schedule) => retry.with_schedule(move || schedule.schedule()),
            None => retry,
        };
        let hedge = match self.hedge {
            Some(config) => retry.hedge(config).map_err(BuildError::of_the("hedge"))?,
            None => HedgeLayer::off(),
        };
        let loop_guard = match self.loop_guard.0 {
            Some(config) => {
                LoopGuardLayer::new(config).map_err(BuildError::of_the("loop guard"))?
            }
            None => LoopGuardLayer::off(),
        };
        let cache = CacheLayer::new(self.cache.clone());
        let shared = Arc::new(Shared {
            registry,
            breakers,
            cache: cache.handle(),
            loop_guard: loop_guard.clone(),
            retry: retry.clone(),
            hedge: hedge.clone(),
            changed: watch::Sender::new(0),
        });
        shared.follow_cache();

        let mut members: BTreeMap<ReplicaSetId, Vec<Member<Guarded>>> = BTreeMap::new();
        let mut known = Vec::new();
        for server in &self.servers {
            let weight = Weight::new(server.weight)
                .map_err(|fault| BuildError::of_server(server.server.id(), fault))?;
            let (member, handles) = member(server, weight, &self.limits, &shared)?;
            members.entry(server.set.clone()).or_default().push(member);
            limits.servers.push(handles);
            known.push(Known {
                id: server.server.id().clone(),
                set: server.set.clone(),
                weight,
                categories: server.categories.clone(),
                calls_per_minute: server.limits.calls_per_minute,
                liveness: Arc::new(Mutex::new(Liveness::default())),
            });
        }
        let pool = Pool::with_health(self.health).map_err(BuildError::of_the("router"))?;
        let pool = Arc::new(pool);
        for (set, members) in members {
            pool.set_members(set, members);
        }
        // after the pool knows them: what is heard of a server that it does not know is lost
        let mut scans = JoinSet::new();
        let mut settled = Vec::new();
        for (server, known) in self.servers.into_iter().zip(&known) {
            let (tell, told) = oneshot::channel();
            settled.push(told);
            let herald = Herald::new(pool.clone(), server.set.clone(), known.id.clone());
            let (connected, connection) = watch::channel(false);
            if let Some(config) = self.health.ping {
                let pinger = Pinger {
                    server: server.server.clone(),
                    config,
                    herald: herald.clone(),
                    connection,
                };
                scans.spawn(pinger.run());
            }
            let scan = Scan {
                server: server.server,
                set: server.set,
                shared: shared.clone(),
                liveness: known.liveness.clone(),
                settled: Some(tell),
                timeout: self.discovery.timeout,
                herald,
                connected,
            };
            scans.spawn(scan.run());
        }

        let settings = Settings {
            cache: self.cache,
            max_attempts: self.retry.max_attempts,
            strategy: self.strategy,
            call_deadline: self.call_deadline,
            hedge: self.hedge,
            loop_guard: self.loop_guard.0,
            breaker: self.breakers.tool,
            limits: self.limits,
        };
        let call_span = match self.metrics {
            Some(metrics) => CallSpanLayer::new().with_metrics(metrics),
            None => CallSpanLayer::new(),
        };
        let router = Router::new(pool).with_strategy(self.strategy);
        let layers = order::assemble(
            call_span,
            cache,
            loop_guard,
            retry,
            hedge,
            rate,
            router.clone(),
        );
        wait_for_lists(settled, self.startup_timeout).await;
        let stack = Stack::new(layers, router, shared, known, limits, settings, scans);
        scopes::warn_of_idle(&stack);
        Ok(stack)
    }

    fn breaker_set(&mut self) -> Result<BreakerSet, BuildError> {
        self.breakers.discovery = self.discovery.breaker;
        for (whose, config) in [
            ("breaker", self.breakers.tool),
            ("breaker of servers", self.breakers.server),
            ("breaker of discovery", self.breakers.discovery),
        ] {
            config.validate().map_err(BuildError::of_the(whose))?;
        }
        self.discovery.validate()?;
        Ok(BreakerSet::new(self.breakers)?)
    }
}

/// Waits until each server has listed its tools or failed to, 30 s if nothing else is said.
async fn wait_for_lists(settled: Vec<oneshot::Receiver<()>>, limit: Option<Duration>) {
    let wait = limit.unwrap_or(Duration::from_secs(30));
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
}

/// Puts the guards around one server. It counts as healthy for a call if it lists the tool, and its
/// own breaker and the tool's would let the call through.
fn member(
    server: &Server,
    weight: Weight,
    limits: &LimitsConfig,
    shared: &Arc<Shared>,
) -> Result<(Member<Guarded>, ServerHandles), BuildError> {
    let id = server.server.id().clone();
    let limits = ServerLayers::new(&server.limits, limits)
        .map_err(BuildError::of_the(format_args!("server `{id}`")))?;
    let rate = limits.rate.limits().clone();
    let of_server = BreakerLayer::of_server(&shared.breakers, id.clone());
    let of_tool = BreakerLayer::new(shared.breakers.clone(), id.clone());
    let (guarded, concurrency) = order::guard(
        of_server.clone(),
        of_tool.clone(),
        limits,
        Leaf::new(server.server.clone()),
    );
    let handles = ServerHandles {
        server: id.clone(),
        rate,
        concurrency,
    };
    let (health_id, health) = (id.clone(), shared.clone());
    let member = Member::new(id, guarded)
        .with_weight(weight)
        .with_categories(server.categories.clone())
        .with_gate(move |call: &ToolCall| {
            let catalogue = health.registry.peek();
            if !catalogue.offers(&health_id, call.tool().name()) {
                return Err(Unfit::NotOffered);
            }
            if of_server.lets_through(call) && of_tool.lets_through(call) {
                Ok(())
            } else {
                Err(Unfit::BreakerOpen)
            }
        });
    Ok((member, handles))
}
