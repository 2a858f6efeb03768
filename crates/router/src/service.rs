//! The router as a service.

use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{
    BoxFuture, InvalidConfig, ReplicaSetId, RouteDecision, ServerId, Tool, ToolCall, ToolError,
    ToolOutput, ToolService,
};
use tower_service::Service;

use crate::choose::{Routing, Selection};
use crate::config::RouterConfig;
use crate::endpoint::Endpoint;
use crate::events::RouteListener;
use crate::pool::Pool;
use crate::rule::{ExclusionReason, Rule};
use crate::strategy::{Affinity, Strategy, StrategyName};
use crate::{decision, future};

/// Sends each call to one server of its tool's replica set. Clones share the pool.
///
/// ```
/// use std::sync::Arc;
///
/// use callward_core::{ReplicaSetId, ServerId, Weight};
/// use callward_router::{Member, Pool, Router, StrategyName};
/// # use callward_testkit::{MockService, call, tool};
/// # use tower::ServiceExt;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (primary, replica) = (MockService::counting(), MockService::counting());
/// let pool = Arc::new(Pool::new());
/// pool.set_members(
///     ReplicaSetId::new("orders")?,
///     vec![
///         Member::new(ServerId::new("orders-primary")?, primary.clone()),
///         Member::new(ServerId::new("orders-replica")?, replica).with_weight(Weight::new(10)?),
///     ],
/// );
/// let router = Router::new(pool).with_strategy(StrategyName::RoundRobin);
///
/// // the replica is too light for a destructive call, so the primary gets both
/// let delete = tool("delete_order").set("orders").destructive().build();
/// for id in [7, 8] {
///     let call = call(&delete, serde_json::json!({"id": id}));
///     router.clone().oneshot(call).await?;
/// }
/// assert_eq!(primary.started(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Router<S> {
    pool: Arc<Pool<S>>,
    routing: Arc<Routing>,
}

impl<S> Router<S> {
    /// Routes over this pool, by the default strategy.
    pub fn new(pool: Arc<Pool<S>>) -> Self {
        Self::of_valid(pool, &RouterConfig::default())
    }

    /// Routes over this pool as the settings say. With the strategy affinity, the router's own
    /// [events](Self::events) report where keys go.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn with_config(pool: Arc<Pool<S>>, config: &RouterConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        Ok(Self::of_valid(pool, config))
    }

    fn of_valid(pool: Arc<Pool<S>>, config: &RouterConfig) -> Self {
        let events = pool.events().clone();
        let strategy = match config.strategy {
            StrategyName::Affinity => {
                Arc::new(Affinity::of(&config.affinity).with_events(events.clone()))
            }
            other => other.strategy(),
        };
        let routing = Arc::new(Routing {
            strategy,
            events,
            cost_budget: config.cost_budget,
            min_available: config.min_available,
        });
        Self { pool, routing }
    }

    /// Sets one of the strategies that come with the router. Default: [`StrategyName::PeakEwma`].
    pub fn with_strategy(self, strategy: StrategyName) -> Self {
        let config = RouterConfig {
            strategy,
            ..RouterConfig::default()
        };
        Self::of_valid(self.pool, &config)
    }

    /// Sets a custom strategy. See [`Strategy`] for how one is made.
    pub fn with_custom_strategy(mut self, strategy: Arc<dyn Strategy>) -> Self {
        Arc::make_mut(&mut self.routing).strategy = strategy;
        self
    }

    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool<S>> {
        &self.pool
    }

    /// Returns a stream of events: which server gets which call and why, and changes of health. A
    /// listener that is too slow loses the oldest events and gets their number; no call waits for
    /// it.
    #[must_use]
    pub fn events(&self) -> RouteListener {
        self.routing.events.listen()
    }

    /// Returns which server a call would get now, and why, with the servers that would not get it.
    /// Nothing is sent and no event is made.
    #[must_use]
    pub fn explain(&self, call: &ToolCall) -> RouteDecision {
        let Some(mut selection) = self.preview(call.tool().set()) else {
            return decision::no_set(call, self.routing.strategy.name());
        };
        let choice = selection.next(call);
        decision::decision(&selection, call, choice)
    }

    /// Lists the servers that the annotation rule gives calls of a tool to, as they are now, in the
    /// order they were added.
    ///
    /// - A destructive tool: available servers that are heavy enough. If there are none, such a
    ///   call fails; it never goes to a lighter server.
    /// - A tool whose plan prefers categories (`caching` for idempotent ones, `high-compute` for
    ///   complex or costly ones): available servers of such a category, or all available ones if
    ///   there is none.
    /// - Any other: all available servers.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use callward_core::{ReplicaSetId, ServerId, Weight};
    /// use callward_router::{Member, Pool, Router};
    /// # use callward_testkit::{MockService, tool};
    ///
    /// let server = |id: &str| ServerId::new(id);
    /// # let (primary, replica) = (MockService::counting(), MockService::counting());
    /// let pool = Arc::new(Pool::new());
    /// pool.set_members(
    ///     ReplicaSetId::new("database")?,
    ///     vec![
    ///         Member::new(server("primary-db")?, primary)
    ///             .with_weight(Weight::new(80)?)
    ///             .with_categories(["database", "caching"]),
    ///         Member::new(server("replica-db")?, replica)
    ///             .with_weight(Weight::new(20)?)
    ///             .with_categories(["database"]),
    ///     ],
    /// );
    /// let router = Router::new(pool);
    ///
    /// // a destructive tool goes to the primary alone
    /// let delete = tool("deleteUser").set("database").destructive().build();
    /// assert_eq!(router.route_by_annotation(&delete), [server("primary-db")?]);
    ///
    /// // a read-only tool goes to any healthy server
    /// let query = tool("queryUsers").set("database").read_only().build();
    /// assert_eq!(
    ///     router.route_by_annotation(&query),
    ///     [server("primary-db")?, server("replica-db")?]
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn route_by_annotation(&self, tool: &Arc<Tool>) -> Vec<ServerId> {
        let Some(selection) = self.preview(tool.set()) else {
            return Vec::new();
        };
        selection.admitted(&ToolCall::new(tool.clone(), Vec::new()))
    }

    /// Begins to choose for a call that is not sent.
    fn preview(&self, set: &ReplicaSetId) -> Option<Selection<S>> {
        let set = self.pool.get(set)?;
        Some(Selection::new(set, self.routing.clone(), true))
    }

    /// Returns what speaks against a server of the call's set now, its weight aside. `None` if
    /// nothing does, or if there is no such server.
    #[must_use]
    pub fn why_not(&self, server: &ServerId, call: &ToolCall) -> Option<ExclusionReason> {
        let set = self.pool.get(call.tool().set())?;
        let rule = Rule::new(call, self.routing.cost_budget);
        rule.check_except_weight(set.endpoint(server)?).err()
    }

    /// Chooses a server for a call as if it were sent, turns included, and sends nothing. `None` if
    /// no server may take it.
    #[must_use]
    pub fn decide(&self, call: &ToolCall) -> Option<ServerId> {
        let set = self.pool.get(call.tool().set())?;
        Selection::new(set, self.routing.clone(), false).next_server(call)
    }

    /// Returns the servers that a call would be offered to now if each in turn refused it, best
    /// first. Nothing is sent.
    pub fn candidates<'a>(
        &self,
        call: &'a ToolCall,
    ) -> impl Iterator<Item = Endpoint> + use<'a, S> {
        let mut selection = self.preview(call.tool().set());
        std::iter::from_fn(move || {
            let selection = selection.as_mut()?;
            let choice = selection.next(call)?;
            selection.set.endpoints().get(choice.place).cloned()
        })
    }
}

impl<S: ToolService + Sync> Service<ToolCall> for Router<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        // which server must be ready is known only from the call
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let routing = &self.routing;
        match self.pool.get(call.tool().set()) {
            Some(set) => future::send(Selection::new(set, routing.clone(), false), call),
            None => {
                let strategy = routing.strategy.name();
                let error = decision::unknown_set(&routing.events, &call, strategy);
                Box::pin(ready(Err(error)))
            }
        }
    }
}
