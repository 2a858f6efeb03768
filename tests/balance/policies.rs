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
pub(crate) struct Front {
    servers: Vec<Arc<Simulated>>,
    /// `None`: the oracle chooses.
    router: Option<Router<Leaf>>,
    turn: AtomicUsize,
}

impl Front {
    pub(crate) fn new(policy: Policy, servers: Vec<Arc<Simulated>>) -> Self {
        let router = |name| Router::new(Arc::new(Pool::new())).with_strategy(name);
        let front = Self {
            servers,
            router: match policy {
                Policy::Strategy(name) => Some(router(name)),
                Policy::Oracle => None,
            },
            turn: AtomicUsize::new(0),
        };
        front.admit(Duration::ZERO);
        front
    }

    /// Updates the router's servers.
    pub(crate) fn admit(&self, now: Duration) {
        if let Some(router) = &self.router {
            let there = self.servers.iter().filter(|server| server.is_there(now));
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
        if let Some(router) = &self.router {
            return Box::pin(router.clone().call(call));
        }
        let work = work_of(&call);
        // another one begins each time, so that equals share
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.servers.len();
        let (before, after) = self.servers.split_at(turn);
        let all = after.iter().chain(before);
        let first = all.min_by_key(|server| server.answers(now, work));
        Leaf(first.expect("there are servers").clone()).call(call)
    }
}

/// The one replica set.
pub(crate) const SET: &str = "simulated";
