//! Who chooses the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tollgate::core::BoxFuture;
use tollgate::router::{Member, Pool, Router, Strategy};
use tollgate::{ReplicaSetId, ToolCall, ToolError, ToolOutput};
use tower::Service;

use crate::world::{Leaf, Simulated, work_of};

/// Who chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Strategy(Strategy),
    /// Knows each queue, what each call will take, and who is slow or failing: sends a call where it
    /// is answered first. No router can do this.
    Oracle,
}

impl Policy {
    pub(crate) const ALL: [Self; 4] = [
        Self::Oracle,
        Self::Strategy(Strategy::LeastConnections),
        Self::Strategy(Strategy::Weighted),
        Self::Strategy(Strategy::RoundRobin),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Strategy(Strategy::LeastConnections) => "least_connections",
            Self::Strategy(Strategy::Weighted) => "weighted",
            Self::Strategy(_) => "round_robin",
        }
    }
}

/// What calls are given to.
pub(crate) enum Front {
    Router(Router<Leaf>),
    Oracle(Oracle),
}

impl Front {
    pub(crate) fn new(policy: Policy, servers: &[Arc<Simulated>]) -> Self {
        match policy {
            Policy::Strategy(strategy) => {
                let front =
                    Self::Router(Router::new(Arc::new(Pool::new())).with_strategy(strategy));
                front.admit(servers, Duration::ZERO);
                front
            }
            Policy::Oracle => Self::Oracle(Oracle {
                servers: servers.to_vec(),
                turn: AtomicUsize::new(0),
            }),
        }
    }

    /// Lets the router know who is there by now.
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
        let first = after
            .iter()
            .chain(before)
            .min_by_key(|server| server.answers(now, work));
        Leaf(first.expect("a server").clone())
    }
}

/// The one replica set.
pub(crate) const SET: &str = "simulated";
