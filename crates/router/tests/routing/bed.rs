//! A replica set of scripted servers, with a router in front of it.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use callward_core::{
    CallRecord, Delivery, ErrorKind, ReplicaSetId, ServerId, Tool, ToolCall, ToolError, ToolOutput,
    Weight,
};
use callward_router::{ExclusionReason, Member, Pool, Router, StrategyName};
use callward_testkit::{MockService, call};
use serde_json::json;
use tower::ServiceExt;

pub(crate) struct Bed {
    pub(crate) pool: Arc<Pool<MockService>>,
    pub(crate) strategy: StrategyName,
}

pub(crate) fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

pub(crate) fn weight(weight: u32) -> Weight {
    Weight::new(weight).unwrap()
}

pub(crate) fn test_set() -> ReplicaSetId {
    ReplicaSetId::new("test").unwrap()
}

pub(crate) fn member(id: &str, service: &MockService) -> Member<MockService> {
    Member::new(server(id), service.clone())
}

/// A member that answers every call.
pub(crate) fn counting(id: &str) -> Member<MockService> {
    Member::new(server(id), MockService::counting())
}

/// A member whose own gate refuses every call.
pub(crate) fn refusing(id: &str, error: ToolError) -> Member<MockService> {
    let service = MockService::new(move |_, _| std::future::ready(Err(error.clone())));
    Member::new(server(id), service)
}

/// The answer of a gate: available or not.
pub(crate) fn well(is_well: bool) -> Result<(), ExclusionReason> {
    is_well.then_some(()).ok_or(ExclusionReason::Unreachable)
}

pub(crate) fn not_sent(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, Delivery::NotSent, "refused by the test")
}

impl Bed {
    pub(crate) fn new(strategy: StrategyName, members: Vec<Member<MockService>>) -> Self {
        let pool = Arc::new(Pool::new());
        pool.set_members(test_set(), members);
        Self { pool, strategy }
    }

    pub(crate) fn router(&self) -> Router<MockService> {
        Router::new(self.pool.clone()).with_strategy(self.strategy)
    }

    pub(crate) async fn send(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        self.router().oneshot(call).await
    }

    /// Calls the tool and returns which server got it, and why.
    pub(crate) async fn route(&self, tool: &Arc<Tool>) -> (String, &'static str) {
        self.route_call(call(tool, json!({}))).await
    }

    pub(crate) async fn route_call(&self, call: ToolCall) -> (String, &'static str) {
        let record = Arc::new(CallRecord::new());
        self.send(call.with_record(record.clone())).await.unwrap();
        let (server, reason) = record.server().unwrap();
        (server.to_string(), reason)
    }

    /// Calls the tool so often, and returns the servers in one string.
    pub(crate) async fn route_many(&self, tool: &Arc<Tool>, times: usize) -> String {
        let mut servers = String::new();
        for _ in 0..times {
            servers.push_str(&self.route(tool).await.0);
        }
        servers
    }

    pub(crate) fn started(&self, id: &str) -> usize {
        let set = self.pool.get(&test_set()).unwrap();
        set.service(&server(id)).unwrap().started()
    }

    pub(crate) fn in_flight(&self, id: &str) -> usize {
        let set = self.pool.get(&test_set()).unwrap();
        set.endpoint(&server(id)).unwrap().in_flight()
    }
}
