//! Turns the settings of a server into a member of its replica set.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callward_breaker::{BreakerLayer, BreakerState, Subject};
use callward_cache::ScopeRules;
use callward_core::infer::{Lexicon, RuleSet};
use callward_core::{BoxFuture, FreshnessMode, Profile, ToolCall, Weight};
use callward_router::{ExclusionReason, Member};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::builder::BuildError;
use crate::leaf::Leaf;
use crate::limits::{LimitsConfig, ServerHandles, ServerLayers};
use crate::order::{self, Guarded};
use crate::ping::{PingConfig, Pinger};
use crate::roster::Known;
use crate::scan::{Liveness, Scan, Shared};
use crate::server::Server;

/// The settings of every server of a stack.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) profile: Profile,
    /// The lifetime mode of servers without one of their own.
    pub(crate) freshness: Option<FreshnessMode>,
    pub(crate) rules: RuleSet,
    pub(crate) lexicon: Option<Arc<Lexicon>>,
    /// The scopes of tools in the cache's config.
    pub(crate) scopes: ScopeRules,
    pub(crate) limits: LimitsConfig,
    /// How long one listing may take.
    pub(crate) listing_timeout: Duration,
    /// The settings of pings.
    pub(crate) ping: Option<PingConfig>,
    /// How long to wait for the lists of new servers.
    pub(crate) startup_timeout: Option<Duration>,
}

/// One server, ready to join its set.
pub(crate) struct Admitted {
    pub(crate) member: Member<Guarded>,
    pub(crate) known: Known,
    /// Follows the server for as long as it is in the stack.
    pub(crate) follower: BoxFuture<'static, ()>,
    /// Completes when the first attempt to list has an outcome.
    pub(crate) listed: oneshot::Receiver<()>,
}

impl Terms {
    /// Puts the guards around one server.
    pub(crate) fn admit(
        &self,
        server: Server,
        shared: &Arc<Shared>,
    ) -> Result<Admitted, BuildError> {
        let (tell, listed) = oneshot::channel();
        let liveness = Arc::new(Mutex::new(Liveness::default()));
        let weight = Weight::new(server.weight)
            .map_err(|fault| BuildError::of_server(server.server.id(), fault))?;
        let factor = server.cost_factor;
        if !(factor.is_finite() && factor >= 0.0) {
            let fault = format_args!("cost_factor: {factor} is not a number of 0 or more");
            return Err(BuildError::of_server(server.server.id(), fault));
        }
        let (member, limits) = member(&server, weight, &self.limits, shared)?;
        let (connected, connection) = watch::channel(false);
        let pinger = self.ping.map(|config| Pinger {
            server: server.server.clone(),
            config,
            circuit: shared.breakers.circuit(server.server.id(), Subject::Server),
            endpoint: member.endpoint().clone(),
            connection,
        });
        let scan = Scan {
            server: server.server.clone(),
            set: server.set.clone(),
            shared: shared.clone(),
            liveness: liveness.clone(),
            settled: Some(tell),
            timeout: self.listing_timeout,
            connected,
        };
        let endpoint = member.endpoint().clone();
        Ok(Admitted {
            member,
            known: Known {
                spec: server,
                endpoint,
                limits,
                liveness,
                weight: Mutex::new(weight),
                scan: OnceLock::new(),
            },
            follower: Box::pin(async move {
                match pinger {
                    Some(pinger) => drop(tokio::join!(scan.run(), pinger.run())),
                    None => scan.run().await,
                }
            }),
            listed,
        })
    }
}

/// Waits until each server has listed its tools or failed to, by default 30 s at most. Returns
/// `false` if the time was too short.
pub(crate) async fn wait_for_lists(
    listed: Vec<oneshot::Receiver<()>>,
    limit: Option<Duration>,
) -> bool {
    let wait = limit.unwrap_or(Duration::from_secs(30));
    let all = async {
        for outcome in listed {
            // a scan that ended sends nothing more
            let _ = outcome.await;
        }
    };
    tokio::time::timeout(wait, all).await.is_ok()
}

/// Puts the guards around one server. It may get a call if it lists the tool, and its own breaker
/// and the tool's would let the call through.
fn member(
    server: &Server,
    weight: Weight,
    limits: &LimitsConfig,
    shared: &Arc<Shared>,
) -> Result<(Member<Guarded>, ServerHandles), BuildError> {
    let id = server.server.id().clone();
    let limits = ServerLayers::new(server, limits)
        .map_err(BuildError::of_the(format_args!("server `{id}`")))?;
    let rate = limits.rate.clone();
    let of_server = BreakerLayer::of_server(shared.breakers.clone(), id.clone());
    let of_tool = BreakerLayer::new(shared.breakers.clone(), id.clone());
    let (guarded, concurrency) =
        order::guard(of_server, of_tool, limits, Leaf::new(server.server.clone()));
    let handles = ServerHandles { rate, concurrency };
    let (health_id, health) = (id.clone(), shared.clone());
    let mut member = Member::new(id, guarded)
        .with_weight(weight)
        .with_categories(server.categories.clone())
        .with_capabilities(server.capabilities.clone())
        .with_cost_factor(server.cost_factor)
        .with_gate(move |call: &ToolCall| {
            let catalogue = health.registry.peek();
            if !catalogue.offers(&health_id, call.tool().name()) {
                return Err(ExclusionReason::NotOffered);
            }
            let available = health.breakers.availability(&health_id, call);
            available.map_err(|state| match state {
                BreakerState::Disconnected => ExclusionReason::Unreachable,
                BreakerState::ForcedOpen => ExclusionReason::HeldOpen,
                _ => ExclusionReason::BreakerOpen,
            })
        });
    if let Some(zone) = &server.zone {
        member = member.with_zone(zone.as_str());
    }
    Ok((member, handles))
}
