//! Picks the server for a call, by what the tool may do.
//!
//! A [`Pool`] holds the replica sets: who may stand in for whom. A [`Router`] is the service in
//! front of it: it reads the call's plan, picks a [`Member`] of the tool's set and sends the call
//! there.
//!
//! **Rule.** The annotation filter comes first and always: members lighter than the plan's
//! `min_weight` do not exist for the call. If nobody is left, the call fails and no server sees
//! it. Among the rest, in this order: healthy before unhealthy, servers that have not failed this
//! call before those that have, members with a weight before those of weight 0 (the standby),
//! members of a preferred category before others, and then the [`Strategy`]. Unhealthy members
//! are only asked when no eligible member is healthy: their own breaker then answers with its own
//! error, which says when it will try again. A call whose plan has a `min_weight` is never sent to
//! an unhealthy member: if no eligible one is healthy, it fails here.
//!
//! **Fallback.** A candidate that refuses at its own gate (breaker open, queue full, nothing
//! sent) costs nothing, so the next candidate is asked, whatever the tool does: this is still the
//! first time that a server sees the call. Any other failure ends the call here; to repeat it is
//! the business of a retry layer. At most 32 candidates are asked. If all refuse, the caller gets
//! the refusal that passes first.
//!
//! **Beside another attempt.** An attempt that says so (`Attempt::elsewhere_only`) goes to a healthy
//! member with a weight that is not to be avoided, or fails at once. An attempt that asks for it
//! (`Attempt::chosen`) is told which server has it while it runs.
//!
//! **Readiness.** A router is always ready: which server is needed is known only from the call.
//! The readiness of the chosen server is awaited in the call's future, until the call's deadline.
//!
//! **Cancellation.** Dropping the future at any stage drops the inner call and takes it out of
//! the member's count of calls in flight.
//!
//! **Clone.** Clones share the pool. A service is cloned out of its member for each call, so it
//! must be `Sync`; [`tower::util::BoxCloneSyncService`] is one that fits many.
//!
//! **Errors.** [`NoEligibleServer`](callward_core::ErrorKind::NoEligibleServer), not sent, names
//! the tool, the weight it needs, and the weight and health of each server.
//! [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded), not sent, if the chosen
//! server did not become ready in time. Errors of a server get its id if they have none.
//!
//! **Order.** A router ends a stack: around it what sees each attempt, inside it, per server,
//! breaker, concurrency limit and attempt timeout, from outside to inside. There is no
//! `RouterLayer`: a layer wraps one service, and a router has many.
//!
//! ```
//! use std::sync::Arc;
//!
//! use callward_core::{ReplicaSetId, ServerId, Weight};
//! use callward_router::{Member, Pool, Router, StrategyName};
//! # use callward_testkit::{MockService, call, tool};
//! # use tower::ServiceExt;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (primary, replica) = (MockService::counting(), MockService::counting());
//! let pool = Arc::new(Pool::new());
//! pool.set_members(
//!     ReplicaSetId::new("orders")?,
//!     vec![
//!         Member::new(ServerId::new("orders-primary")?, primary.clone()),
//!         Member::new(ServerId::new("orders-replica")?, replica).with_weight(Weight::new(10)?),
//!     ],
//! );
//! let router = Router::new(pool).with_strategy(StrategyName::RoundRobin);
//!
//! // the replica is too light for a destructive call, so the primary gets both
//! let delete = tool("delete_order").set("orders").destructive().build();
//! for id in [7, 8] {
//!     let call = call(&delete, serde_json::json!({"id": id}));
//!     router.clone().oneshot(call).await?;
//! }
//! assert_eq!(primary.started(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! [`tower::util::BoxCloneSyncService`]: https://docs.rs/tower/latest/tower/util/struct.BoxCloneSyncService.html

pub mod affinity;
mod choose;
mod config;
mod drain;
mod draw;
mod eligible;
mod endpoint;
mod events;
mod ewma;
mod flaws;
mod future;
mod groups;
mod health;
mod home;
mod ineligible;
mod lane;
mod measured;
mod member;
mod outcome;
mod pool;
mod rule;
mod service;
mod set;
mod state;
mod stats;
mod strategy;
mod tools;
mod trail;
mod turn;
mod unfit;

pub use config::RouterConfig;
pub use drain::{Drained, Draining};
pub use eligible::Eligible;
pub use endpoint::Endpoint;
pub use events::{RouteEvent, RouteEvents, RouteListener};
pub use future::RouteFuture;
pub use health::{
    HealthChange, HealthConfig, HealthState, HealthStatus, HealthUpdate, PingConfig, Pings,
    Presence, Verdict, Witness, judge,
};
pub use member::Member;
pub use outcome::Outcome;
pub use pool::{Pool, Sets, UnknownServer};
pub use service::Router;
pub use set::ReplicaSet;
pub use stats::{Latency, ServerStats, SetStats, Totals};
pub use strategy::{
    Affinity, Capability, Category, Lacking, LeastConnections, PeakEwma, Priority, Random,
    RoundRobin, Strategy, StrategyName, Weighted,
};
pub use unfit::Unfit;
