//! The router as a service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{
    InvalidConfig, RouteDecision, ServerId, Tool, ToolCall, ToolError, ToolOutput, ToolService,
};
use tower_service::Service;

use crate::choose::{Candidates, DryRun, Walk, Ways};
use crate::config::RouterConfig;
use crate::endpoint::Endpoint;
use crate::events::RouteListener;
use crate::future::RouteFuture;
use crate::ineligible;
use crate::pool::Pool;
use crate::rule::Rule;
use crate::strategy::{Affinity, Strategy, StrategyName};
use crate::trail;
use crate::unfit::Unfit;

/// Sends each call to one server of its tool's replica set.
pub struct Router<S> {
    /// One pointer: a service is cloned for each call.
    site: Arc<Site<S>>,
}

/// Where a router chooses, and how.
struct Site<S> {
    pool: Arc<Pool<S>>,
    ways: Arc<Ways>,
}

impl<S> Clone for Site<S> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            ways: self.ways.clone(),
        }
    }
}

impl<S> Router<S> {
    /// Routes over this pool, by the default strategy.
    #[must_use]
    pub fn new(pool: Arc<Pool<S>>) -> Self {
        let ways = Arc::new(Ways {
            strategy: StrategyName::default().strategy(),
            events: pool.events().clone(),
            cost_budget: None,
        });
        let site = Arc::new(Site { pool, ways });
        Self { site }
    }

    fn ways_mut(&mut self) -> &mut Ways {
        Arc::make_mut(&mut Arc::make_mut(&mut self.site).ways)
    }

    /// Routes over this pool as the settings say. Where the strategy is affinity, the router's own
    /// [events](Self::events) tell where keys go.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn with_config(pool: Arc<Pool<S>>, config: &RouterConfig) -> Result<Self, InvalidConfig> {
        let strategy = config.make_strategy(Some(pool.events().clone()))?;
        let router = Self::new(pool).with_custom_strategy(strategy);
        Ok(match config.cost_budget {
            Some(budget) => router.with_cost_budget(budget),
            None => router,
        })
    }

    /// Sets one of the strategies that come with the router. Default: [`StrategyName::PeakEwma`].
    #[must_use]
    pub fn with_strategy(self, name: StrategyName) -> Self {
        let strategy = match name {
            StrategyName::Affinity => {
                let events = self.site.pool.events().clone();
                Arc::new(Affinity::default().with_observer(events))
            }
            other => other.strategy(),
        };
        self.with_custom_strategy(strategy)
    }

    /// Sets a strategy of somebody else's. See [`Strategy`] for how one is made.
    #[must_use]
    pub fn with_custom_strategy(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.ways_mut().strategy = strategy;
        self
    }

    /// Sets what each attempt of a call may cost at most, in the units of `costHint`. What a call
    /// costs on a server is its tool's `costHint` times the server's
    /// [cost factor](crate::Member::with_cost_factor); servers where that is more than the budget are
    /// no candidates, and where there is no other, the call fails. A tool without a `costHint` fits
    /// any budget. A call may state a lower budget
    /// ([`ToolCall::with_cost_budget`]). Default: any cost.
    ///
    /// A budget is a limit and no preference: within it the strategy chooses as it would without, as
    /// the cheapest server would otherwise get every call.
    ///
    /// A budget below 0, or one that is no number, is one of 0.
    #[must_use]
    pub fn with_cost_budget(mut self, budget: f64) -> Self {
        // NaN is no maximum
        self.ways_mut().cost_budget = Some(budget.max(0.0));
        self
    }

    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool<S>> {
        &self.site.pool
    }

    /// Returns the strategy.
    #[must_use]
    pub fn strategy(&self) -> &dyn Strategy {
        &*self.site.ways.strategy
    }

    /// Returns what happens from now on around the servers of the pool, as it happens: which gets which
    /// call and why, and what is found out about them. A listener that does not keep up loses the
    /// oldest and is told how many; no call waits for one, and without any nothing is made.
    #[must_use]
    pub fn events(&self) -> RouteListener {
        self.site.ways.events.listen()
    }

    /// Says which server a call would get now, and why, down to the servers that would not get it.
    /// Nothing is sent, nobody is told, and whose turn it is stays as it is.
    #[must_use]
    pub fn explain(&self, call: &ToolCall) -> RouteDecision {
        let Some(set) = self.site.pool.get(call.tool().set()) else {
            return trail::no_set(call, self.site.ways.strategy.name());
        };
        let mut candidates = Candidates::new(set, self.site.ways.clone()).dry();
        let choice = candidates.next(call);
        trail::decision(&candidates, call, choice)
    }

    /// Lists the servers that the annotation rule gives calls of a tool to, as they are now, in the
    /// order they were added. Nobody is listed whom any strategy, pin or affinity could not choose.
    ///
    /// - A destructive tool: fit servers that are heavy enough. None of them is an empty list: such a
    ///   call fails, and never goes to a lighter server.
    /// - A tool whose plan prefers categories (`caching` for idempotent ones, `high-compute` for
    ///   complex or costly ones): fit servers of such a category, or all fit ones if there is none.
    /// - Any other: all fit servers.
    ///
    /// It is the list for a call without arguments; [`admitted`](Self::admitted) takes a call.
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
        self.admitted(&ToolCall::new(tool.clone(), Vec::new()))
    }

    /// Lists the servers that the annotation rule gives a call to, as
    /// [`route_by_annotation`](Self::route_by_annotation) does, under the plan that its arguments give
    /// it, its pin and its budget.
    #[must_use]
    pub fn admitted(&self, call: &ToolCall) -> Vec<ServerId> {
        let Some(set) = self.site.pool.get(call.tool().set()) else {
            return Vec::new();
        };
        let candidates = Candidates::new(set, self.site.ways.clone());
        let admitted = candidates.admitted(call).into_iter();
        admitted.map(|server| server.server().clone()).collect()
    }

    /// Returns what speaks against a server of the call's set now, its weight aside. `None` where
    /// nothing does, and where there is no such server.
    #[must_use]
    pub fn why_not(&self, server: &ServerId, call: &ToolCall) -> Option<Unfit> {
        let set = self.site.pool.get(call.tool().set())?;
        let rule = Rule::new(call, self.site.ways.cost_budget, &*self.site.ways.strategy);
        rule.check_besides_weight(set.endpoint(server)?).err()
    }

    /// Chooses a server for a call as if it were sent, turns included, and sends nothing. `None` if no
    /// server may take it.
    #[must_use]
    pub fn decide(&self, call: &ToolCall) -> Option<ServerId> {
        let sets = self.site.pool.read();
        let mut candidates = Walk::new(&**sets.get(call.tool().set())?, &*self.site.ways);
        let choice = candidates.next(call)?;
        let endpoint = candidates.set().endpoints().get(choice.place)?;
        Some(endpoint.server().clone())
    }

    /// Returns the servers that a call would be offered to now if each in turn refused it, best
    /// first. Nothing is sent, and whose turn it is stays as it is.
    pub fn candidates<'a>(
        &self,
        call: &'a ToolCall,
    ) -> impl Iterator<Item = Endpoint> + use<'a, S> {
        let set = self.site.pool.get(call.tool().set());
        let ways = self.site.ways.clone();
        set.into_iter().flat_map(move |set| DryRun {
            candidates: Candidates::new(set, ways.clone()).dry(),
            call,
        })
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self {
            site: self.site.clone(),
        }
    }
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("pool", &self.site.pool)
            .field("strategy", &self.site.ways.strategy)
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
        match self.site.pool.get(call.tool().set()) {
            None => {
                let error = ineligible::unknown_set(&call);
                let Ways {
                    strategy, events, ..
                } = &*self.site.ways;
                trail::unknown_set(events, &call, strategy.name(), &error);
                RouteFuture::failed(error)
            }
            Some(set) => RouteFuture::start(Candidates::new(set, self.site.ways.clone()), call),
        }
    }
}
