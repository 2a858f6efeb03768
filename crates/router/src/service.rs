//! The router as a service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{RouteDecision, ServerId, ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::choose::{Candidates, DryRun, Ways};
use crate::endpoint::Endpoint;
use crate::events::RouteListener;
use crate::future::RouteFuture;
use crate::ineligible;
use crate::pool::Pool;
use crate::strategy::{Affinity, Strategy, StrategyName};
use crate::trail;
use crate::unfit::Unfit;

/// Sends each call to one server of its tool's replica set.
pub struct Router<S> {
    pool: Arc<Pool<S>>,
    ways: Arc<Ways>,
}

impl<S> Router<S> {
    /// Routes over this pool, by the default strategy.
    #[must_use]
    pub fn new(pool: Arc<Pool<S>>) -> Self {
        let ways = Arc::new(Ways {
            strategy: StrategyName::default().strategy(),
            events: pool.events().clone(),
        });
        Self { pool, ways }
    }

    /// Sets one of the strategies that come with the router. Default: [`StrategyName::PeakEwma`].
    #[must_use]
    pub fn with_strategy(self, name: StrategyName) -> Self {
        let strategy = match name {
            StrategyName::Affinity => {
                let events = self.pool.events().clone();
                Arc::new(Affinity::default().with_observer(events))
            }
            other => other.strategy(),
        };
        self.with_custom_strategy(strategy)
    }

    /// Sets a strategy of somebody else's. See [`Strategy`] for how one is made.
    #[must_use]
    pub fn with_custom_strategy(mut self, strategy: Arc<dyn Strategy>) -> Self {
        Arc::make_mut(&mut self.ways).strategy = strategy;
        self
    }

    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool<S>> {
        &self.pool
    }

    /// Returns the strategy.
    #[must_use]
    pub fn strategy(&self) -> &dyn Strategy {
        &*self.ways.strategy
    }

    /// Returns what happens from now on around the servers of the pool, as it happens: which gets which
    /// call and why, and what is found out about them. A listener that does not keep up loses the
    /// oldest and is told how many; no call waits for one, and without any nothing is made.
    #[must_use]
    pub fn events(&self) -> RouteListener {
        self.ways.events.listen()
    }

    /// Says which server a call would get now, and why, down to the servers that would not get it.
    /// Nothing is sent, nobody is told, and whose turn it is stays as it is.
    #[must_use]
    pub fn explain(&self, call: &ToolCall) -> RouteDecision {
        let Some(set) = self.pool.get(call.tool().set()) else {
            return trail::no_set(call, self.ways.strategy.name());
        };
        let mut candidates = Candidates::new(set, self.ways.clone()).dry();
        let choice = candidates.next(call);
        trail::decision(&candidates, call, choice)
    }

    /// Returns what speaks against a server of the call's set now, its weight aside. `None` where
    /// nothing does, and where there is no such server.
    #[must_use]
    pub fn why_not(&self, server: &ServerId, call: &ToolCall) -> Option<Unfit> {
        let set = self.pool.get(call.tool().set())?;
        set.endpoint(server)?.check(call).err()
    }

    /// Chooses a server for a call as if it were sent, turns included, and sends nothing. `None` if no
    /// server may take it.
    #[must_use]
    pub fn decide(&self, call: &ToolCall) -> Option<ServerId> {
        let set = self.pool.get(call.tool().set())?;
        let choice = Candidates::new(set.clone(), self.ways.clone()).next(call)?;
        let endpoint = set.endpoints().get(choice.place)?;
        Some(endpoint.server().clone())
    }

    /// Returns the servers that a call would be offered to now if each in turn refused it, best
    /// first. Nothing is sent, and whose turn it is stays as it is.
    pub fn candidates<'a>(
        &self,
        call: &'a ToolCall,
    ) -> impl Iterator<Item = Endpoint> + use<'a, S> {
        let set = self.pool.get(call.tool().set());
        let ways = self.ways.clone();
        set.into_iter().flat_map(move |set| DryRun {
            candidates: Candidates::new(set, ways.clone()).dry(),
            call,
        })
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            ways: self.ways.clone(),
        }
    }
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("pool", &self.pool)
            .field("strategy", &self.ways.strategy)
            .finish()
    }
}

impl<S> Service<ToolCall> for Router<S>
where
    S: ToolService + Sync,
{
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = RouteFuture<S>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        // which server must be ready is known only from the call
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> RouteFuture<S> {
        match self.pool.get(call.tool().set()) {
            None => {
                let error = ineligible::unknown_set(&call);
                let Ways { strategy, events } = &*self.ways;
                trail::unknown_set(events, &call, strategy.name(), &error);
                RouteFuture::failed(error)
            }
            Some(set) => RouteFuture::start(Candidates::new(set, self.ways.clone()), call),
        }
    }
}
