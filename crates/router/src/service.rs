//! The router as a service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower_service::Service;

use crate::choose::Candidates;
use crate::future::RouteFuture;
use crate::ineligible;
use crate::pool::Pool;
use crate::strategy::Strategy;

/// Sends each call to one server of its tool's replica set.
pub struct Router<S> {
    pool: Arc<Pool<S>>,
    strategy: Strategy,
}

impl<S> Router<S> {
    /// Routes over this pool, by the default strategy.
    #[must_use]
    pub fn new(pool: Arc<Pool<S>>) -> Self {
        Self {
            pool,
            strategy: Strategy::default(),
        }
    }

    /// Sets the strategy. Default: [`Strategy::LeastConnections`].
    #[must_use]
    pub fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool<S>> {
        &self.pool
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            strategy: self.strategy,
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
            Some(set) => RouteFuture::start(Candidates::new(set, self.strategy), call),
        }
    }
}
