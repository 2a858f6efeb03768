//! A replica set of servers whose fate the test decides while it runs.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use callward_core::{Delivery, ErrorKind, ReplicaSetId, ServerId, Tool, ToolError, ToolOutput};
use callward_router::{
    HealthConfig, HealthState, HealthUpdate, Member, Pool, Presence, Router, StrategyName, Witness,
};
use callward_testkit::{MockService, call};
use parking_lot::Mutex;
use serde_json::json;
use tower::ServiceExt;

type Answer = Result<ToolOutput, ToolError>;

/// What a server answers from now on.
#[derive(Clone, Default)]
pub(crate) struct Fate(Arc<Mutex<Option<Answer>>>);

impl Fate {
    pub(crate) fn set(&self, answer: Answer) {
        *self.0.lock() = Some(answer);
    }

    pub(crate) fn fails(&self) {
        self.set(Err(fault()));
    }

    pub(crate) fn works(&self) {
        *self.0.lock() = None;
    }
}

pub(crate) fn fault() -> ToolError {
    ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "broken")
}

pub(crate) fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

pub(crate) fn set() -> ReplicaSetId {
    ReplicaSetId::new("test").unwrap()
}

/// A member that does as its fate says, and how to decide that.
pub(crate) fn fated(id: &str) -> (Member<MockService>, Fate) {
    let fate = Fate::default();
    let own = fate.clone();
    let service = MockService::new(move |_, _| {
        let answer = own.0.lock().clone();
        std::future::ready(answer.unwrap_or_else(|| Ok(ToolOutput::text("fine"))))
    });
    (Member::new(server(id), service), fate)
}

pub(crate) struct Bed {
    pub(crate) pool: Arc<Pool<MockService>>,
    pub(crate) strategy: StrategyName,
    pub(crate) told: Arc<Mutex<Vec<HealthUpdate>>>,
}

impl Bed {
    /// Servers `a`, `b`, `c` and so on; faults in a row are all that ejects.
    pub(crate) fn new(strategy: StrategyName, servers: usize) -> (Self, Vec<Fate>) {
        let config = HealthConfig::default().with_outlier(None);
        Self::with(config, strategy, servers)
    }

    pub(crate) fn with(
        config: HealthConfig,
        strategy: StrategyName,
        servers: usize,
    ) -> (Self, Vec<Fate>) {
        let ids = ('a'..='z').take(servers).map(|id| id.to_string());
        let (members, fates) = ids.map(|id| fated(&id)).unzip();
        (Self::of(config, strategy, members), fates)
    }

    pub(crate) fn of(
        config: HealthConfig,
        strategy: StrategyName,
        members: Vec<Member<MockService>>,
    ) -> Self {
        let pool = Arc::new(Pool::with_health(config).unwrap());
        let told: Arc<Mutex<Vec<HealthUpdate>>> = Arc::default();
        let own = told.clone();
        assert!(pool.on_health(move |update| own.lock().push(update)));
        pool.set_members(set(), members);
        Self {
            pool,
            strategy,
            told,
        }
    }

    pub(crate) fn router(&self) -> Router<MockService> {
        Router::new(self.pool.clone()).with_strategy(self.strategy)
    }

    pub(crate) async fn send(&self, tool: &Arc<Tool>) -> Answer {
        self.router().oneshot(call(tool, json!({}))).await
    }

    /// Sends so many calls, and whatever becomes of them.
    pub(crate) async fn send_many(&self, tool: &Arc<Tool>, calls: usize) {
        for _ in 0..calls {
            let _ = self.send(tool).await;
        }
    }

    pub(crate) fn witness(&self, id: &str, who: Witness, presence: Presence) {
        self.pool.set_health(&server(id), who, presence).unwrap();
    }

    pub(crate) fn got(&self, id: &str) -> usize {
        let set = self.pool.get(&set()).unwrap();
        set.service(&server(id)).unwrap().started()
    }

    pub(crate) fn state(&self, id: &str) -> HealthState {
        self.pool.health(&server(id)).unwrap().state
    }

    pub(crate) fn faults(&self, id: &str) -> u32 {
        self.pool.health(&server(id)).unwrap().faults_in_a_row
    }
}
