//! The router as a service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{ServerId, ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::choose::{Candidates, DryRun};
use crate::endpoint::Endpoint;
use crate::future::RouteFuture;
use crate::ineligible;
use crate::pool::Pool;
use crate::strategy::{Strategy, StrategyName};

/// Sends each call to one server of its tool's replica set.
pub struct Router<S> {
    pool: Arc<Pool<S>>,
    strategy: Arc<dyn Strategy>,
}

impl<S> Router<S> {
    /// Routes over this pool, by the default strategy.
    #[must_use]
    pub fn new(pool: Arc<Pool<S>>) -> Self {
        Self {
            pool,
            strategy: StrategyName::default().strategy(),
        }
    }

    /// Sets one of the strategies that come with the router. Default: [`StrategyName::PeakEwma`].
    #[must_use]
    pub fn with_strategy(self, name: StrategyName) -> Self {
        self.with_custom_strategy(name.strategy())
    }

    /// Sets a strategy of somebody else's. See [`Strategy`] for how one is made.
    #[must_use]
    pub fn with_custom_strategy(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.strategy = strategy;
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
        &*self.strategy
    }

    /// Chooses a server for a call as if it were sent, turns included, and sends nothing. `None` if no
    /// server may take it.
    #[must_use]
    pub fn decide(&self, call: &ToolCall) -> Option<ServerId> {
        let set = self.pool.get(call.tool().set())?;
        let choice = Candidates::new(set.clone(), self.strategy.clone()).next(call)?;
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
        let strategy = self.strategy.clone();
        set.into_iter().flat_map(move |set| DryRun {
            candidates: Candidates::new(set, strategy.clone()).dry(),
            call,
        })
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            strategy: self.strategy.clone(),
        }
    }
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("pool", &self.pool)
            .field("strategy", &self.strategy)
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
            None => RouteFuture::failed(ineligible::unknown_set(&call)),
            Some(set) => RouteFuture::start(Candidates::new(set, self.strategy.clone()), call),
        }
    }
}
