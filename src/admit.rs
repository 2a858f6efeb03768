//! Turns the settings of a server into a member of its replica set.

use std::sync::Arc;

use callward_breaker::{BreakerLayer, BreakerState, Subject};
use callward_core::{BoxFuture, CallStats, ToolCall, Weight};
use callward_limit::{AttemptTimeoutLayer, RateLimitLayer};
use callward_router::{ExclusionReason, Member};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::builder::{BuildError, Settings};
use crate::measured::MeasureLayer;
use crate::order::{self, Guarded};
use crate::ping::Pinger;
use crate::roster::Known;
use crate::scan::{Liveness, Scan};
use crate::server::Server;
use crate::shared::Shared;

/// One server, ready to join its set, and what follows it for as long as it is in the stack.
pub(crate) type Admitted = (Member<Guarded>, Known, BoxFuture<'static, ()>);

impl Settings {
    /// Puts the guards around one server. It may get a call if it lists the tool, and its own
    /// breaker and the tool's would let the call through.
    pub(crate) fn admit(
        &self,
        server: Server,
        shared: &Arc<Shared>,
    ) -> Result<Admitted, BuildError> {
        let id = server.id();
        let weight =
            Weight::new(server.weight).map_err(|fault| BuildError::of_server(id, fault))?;
        let factor = server.cost_factor;
        if !(factor.is_finite() && factor >= 0.0) {
            let fault = format_args!("cost_factor: {factor} is not a number of 0 or more");
            return Err(BuildError::of_server(id, fault));
        }
        let mut rate = self.limits.rate;
        rate.tools = false;
        rate.in_all = server.calls_per_minute;
        let rate =
            RateLimitLayer::new(rate).map_err(BuildError::of_the(format_args!("server `{id}`")))?;
        let stats = Arc::<CallStats>::default();
        let (guarded, concurrency) = order::guard(
            BreakerLayer::of_server(shared.breakers.clone(), id.clone()),
            BreakerLayer::new(shared.breakers.clone(), id.clone()),
            rate.clone(),
            server.concurrency.clone(),
            MeasureLayer(Some(stats.clone())),
            AttemptTimeoutLayer::new().with_cap(self.limits.progress_cap),
            server.server.clone(),
        );
        let (health_id, health) = (id.clone(), shared.clone());
        let mut member = Member::new(id.clone(), guarded)
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
        let endpoint = member.endpoint.clone();
        let liveness = Arc::new(watch::Sender::new(Liveness::default()));
        let pinger = self.ping.0.map(|config| Pinger {
            server: server.server.0.clone(),
            config,
            circuit: shared.breakers.circuit(id, Subject::Server),
            endpoint: endpoint.clone(),
            liveness: liveness.subscribe(),
        });
        let wanted = Arc::<Notify>::default();
        let scan = Scan {
            server: server.server.0.clone(),
            set: server.set.clone(),
            shared: shared.clone(),
            liveness: liveness.clone(),
            timeout: self.listing_timeout(),
            refresh: self.refresh,
            wanted: wanted.clone(),
        };
        let known = Known {
            spec: server,
            endpoint,
            rate,
            concurrency,
            stats,
            liveness,
            weight: Mutex::new(weight),
            scan: None,
            wanted,
        };
        let follower = async move {
            match pinger {
                Some(pinger) => drop(tokio::join!(scan.run(), pinger.run())),
                None => scan.run().await,
            }
        };
        Ok((member, known, Box::pin(follower)))
    }
}
