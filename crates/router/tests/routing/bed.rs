//! A replica set of scripted servers, with a router in front of it.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use callward_core::{
    CallRecord, Delivery, ErrorKind, ReplicaSetId, ServerId, Tool, ToolCall, ToolError, ToolOutput,
    Weight,
};
use callward_router::{ExclusionReason, Member, Pool, Router, StrategyName};
use callward_testkit::{MockService, call, tool};
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

/// Makes members by their words: `a=49` has a weight, `a+caching` a category, `a*0.5` a cost
/// factor, and `a!unreachable` is excluded for that reason.
pub(crate) fn members(words: &str) -> Vec<Member<MockService>> {
    words.split_whitespace().map(one).collect()
}

fn one(word: &str) -> Member<MockService> {
    let end = word.find(['=', '+', '*', '!']).unwrap_or(word.len());
    let (id, mut rest) = word.split_at(end);
    let mut member = counting(id);
    while let Some(sign) = rest.chars().next() {
        let end = rest[1..].find(['=', '+', '*', '!']).map(|at| at + 1);
        let (word, more) = rest.split_at(end.unwrap_or(rest.len()));
        let value = word[1..].to_owned();
        member = match sign {
            '=' => member.with_weight(weight(value.parse().unwrap())),
            '+' => member.with_categories([value]),
            '*' => member.with_cost_factor(value.parse().unwrap()),
            _ => {
                let reason = match &*value {
                    "unreachable" => ExclusionReason::Unreachable,
                    "open" => ExclusionReason::BreakerOpen,
                    "held" => ExclusionReason::HeldOpen,
                    _ => ExclusionReason::NotOffered,
                };
                member.with_gate(move |_| Err(reason))
            }
        };
        rest = more;
    }
    member
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

/// A tool by its effect.
pub(crate) fn of(effect: &str) -> Arc<Tool> {
    let tool = tool(effect);
    let tool = match effect {
        "read" => tool.read_only(),
        "put" => tool.idempotent(),
        "delete" => tool.destructive(),
        "clear" => tool
            .destructive()
            .hint(|hints| hints.idempotent_hint = Some(true)),
        _ => tool,
    };
    tool.build()
}

pub(crate) fn read() -> ToolCall {
    call(&of("read"), json!({}))
}

pub(crate) fn delete() -> ToolCall {
    call(&of("delete"), json!({}))
}

/// Returns the cells of a table: its columns are at least two spaces apart.
pub(crate) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.skip(1).map(|line| {
        let cells = line.split("  ").map(str::trim);
        let cells: Vec<_> = cells.filter(|cell| !cell.is_empty()).collect();
        cells.try_into().unwrap()
    })
}

/// Reads the name of a strategy.
pub(crate) fn strategy(name: &str) -> StrategyName {
    serde_json::from_value(name.into()).unwrap()
}

impl Bed {
    pub(crate) fn new(strategy: StrategyName, members: Vec<Member<MockService>>) -> Self {
        let pool = Arc::new(Pool::new());
        pool.set_members(test_set(), members);
        Self { pool, strategy }
    }

    /// By the default strategy.
    pub(crate) fn of(words: &str) -> Self {
        Self::new(StrategyName::default(), members(words))
    }

    pub(crate) fn in_turn(words: &str) -> Self {
        Self::new(StrategyName::RoundRobin, members(words))
    }

    pub(crate) fn one(member: Member<MockService>) -> Self {
        Self::new(StrategyName::default(), vec![member])
    }

    pub(crate) fn router(&self) -> Router<MockService> {
        Router::new(self.pool.clone()).with_strategy(self.strategy)
    }

    pub(crate) async fn send(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        self.router().oneshot(call).await
    }

    /// Sends a call that fails.
    pub(crate) async fn fail(&self, call: ToolCall) -> ToolError {
        self.send(call).await.unwrap_err()
    }

    /// Calls the tool and returns which server got it, and why.
    pub(crate) async fn route(&self, tool: &Arc<Tool>) -> (String, &'static str) {
        self.route_call(call(tool, json!({}))).await
    }

    pub(crate) async fn route_call(&self, call: ToolCall) -> (String, &'static str) {
        let record = Arc::new(CallRecord::new());
        self.send(call.with_record(record.clone())).await.unwrap();
        let (server, reason) = record.facts().server.unwrap();
        (server.to_string(), reason)
    }

    /// Calls the tool this often, and returns the servers in one string.
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
