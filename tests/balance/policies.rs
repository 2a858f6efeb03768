//! Who chooses the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::BoxFuture;
use callward::router::{Member, Pool, Router, StrategyName};
use callward::{ReplicaSetId, ToolCall, ToolError, ToolOutput};
use tower::Service;

use crate::world::{Leaf, Simulated, work_of};

/// Who chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// A router with this strategy and its defaults otherwise.
    Strategy(StrategyName),
    /// Knows each queue, what each call will take, and which servers are slow or failing: sends a
    /// call where it is answered first. No router can do this.
    Oracle,
}

impl Policy {
    /// Category and capability are left out: for tools that ask for neither they are the default.
    /// So are weighted and priority: among servers of one weight the first takes turns as round
    /// robin does, and the second sends all calls to one server.
    pub(crate) const ALL: [Self; 6] = [
        Self::Oracle,
        Self::Strategy(StrategyName::PeakEwma),
        Self::Strategy(StrategyName::LeastConnections),
        Self::Strategy(StrategyName::RoundRobin),
        Self::Strategy(StrategyName::Random),
        Self::Strategy(StrategyName::Affinity),
    ];
}

/// What calls are given to.
pub(crate) enum Front {
    Router(Router<Leaf>),
    Oracle(Oracle),
}

impl Front {
    pub(crate) fn new(policy: Policy, servers: &[Arc<Simulated>]) -> Self {
        match policy {
            Policy::Strategy(name) => Self::router(name, servers),
            Policy::Oracle => Self::Oracle(Oracle {
                servers: servers.to_vec(),
                turn: AtomicUsize::new(0),
            }),
        }
    }

    fn router(name: StrategyName, servers: &[Arc<Simulated>]) -> Self {
        let front = Self::Router(Router::new(Arc::new(Pool::new())).with_strategy(name));
        front.admit(servers, Duration::ZERO);
        front
    }

    /// Updates the router's servers.
    pub(crate) fn admit(&self, servers: &[Arc<Simulated>], now: Duration) {
        if let Self::Router(router) = self {
            let there = servers.iter().filter(|server| server.is_there(now));
            let member =
                |server: &Arc<Simulated>| Member::new(server.id.clone(), Leaf(server.clone()));
            let set = ReplicaSetId::new(SET).expect("a valid id");
            router.pool().set_members(set, there.map(member).collect());
        }
    }

    /// Chooses a server for the call, now; the future is its answer.
    pub(crate) fn call(
        &self,
        call: ToolCall,
        now: Duration,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        match self {
            Self::Router(router) => Box::pin(router.clone().call(call)),
            Self::Oracle(oracle) => oracle.choose(&call, now).call(call),
        }
    }
}

/// See [`Policy::Oracle`].
pub(crate) struct Oracle {
    servers: Vec<Arc<Simulated>>,
    turn: AtomicUsize,
}

impl Oracle {
    fn choose(&self, call: &ToolCall, now: Duration) -> Leaf {
        let work = work_of(call);
        // another one begins each time, so that equals share
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.servers.len();
        let (before, after) = self.servers.split_at(turn);
        let all = after.iter().chain(before);
        let first = all.min_by_key(|server| server.answers(now, work));
        Leaf(first.expect("there are servers").clone())
    }
}

/// The one replica set.
pub(crate) const SET: &str = "simulated";
