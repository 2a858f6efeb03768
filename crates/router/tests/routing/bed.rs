//! Replica sets of scripted servers, with a router in front of them.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::{
    CallRecord, Caller, Delivery, ErrorKind, Principal, ReplicaSetId, ServerId, SessionId, Tool,
    ToolCall, ToolError, ToolOutput, Weight,
};
use callward_router::affinity::AffinityConfig;
use callward_router::{
    Affinity, ExclusionReason, Member, Pool, RouteEvent, RouteListener, Router, StrategyName,
};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::unconstrained;
use tower::ServiceExt;

pub(crate) struct Bed {
    pub(crate) pool: Arc<Pool<MockService>>,
    pub(crate) router: Router<MockService>,
    flaws: Flaws,
}

/// What speaks against servers, by their names.
type Flaws = Mutex<HashMap<String, Flaw>>;
type Flaw = Arc<Mutex<Option<ExclusionReason>>>;

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
    member(id, &MockService::counting())
}

/// Makes members by their words: `a=49` has a weight, `a+caching` a category, `a*0.5` a cost
/// factor, and `a!unreachable` is excluded for that reason.
pub(crate) fn members(words: &str) -> Vec<Member<MockService>> {
    with_flaws(words, &Flaws::default())
}

fn with_flaws(words: &str, flaws: &Flaws) -> Vec<Member<MockService>> {
    let words = words.split_whitespace();
    words.map(|word| one(word, flaws)).collect()
}

fn one(word: &str, flaws: &Flaws) -> Member<MockService> {
    let is_sign = |sign: char| "=+*!".contains(sign);
    let (id, mut rest) = word.split_at(word.find(is_sign).unwrap_or(word.len()));
    let flaw = flaws.lock().entry(id.to_owned()).or_default().clone();
    let mut member = counting(id);
    while let Some(sign) = rest.chars().next() {
        let end = rest[1..].find(is_sign).map_or(rest.len(), |at| at + 1);
        let value = rest[1..end].to_owned();
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
                *flaw.lock() = Some(reason);
                member
            }
        };
        rest = &rest[end..];
    }
    member.with_gate(move |_| flaw.lock().map_or(Ok(()), Err))
}

/// A member whose own gate refuses every call.
pub(crate) fn refusing(id: &str, error: ToolError) -> Member<MockService> {
    let service = MockService::new(move |_, _| std::future::ready(Err(error.clone())));
    member(id, &service)
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

/// A call of a session.
pub(crate) fn by(session: impl ToString + Copy, effect: &str) -> ToolCall {
    let session = SessionId::new(session.to_string());
    let caller = Caller::new(Principal::new("ada")).with_session(session);
    call(&of(effect), json!({"id": 1})).with_caller(Arc::new(caller))
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
    StrategyName::by_name(name).unwrap()
}

/// Returns all events that a listener has not received yet.
pub(crate) fn received(listener: &mut RouteListener) -> Vec<RouteEvent> {
    // also beyond tokio's budget for a poll
    let next = || unconstrained(listener.next()).now_or_never().flatten();
    std::iter::from_fn(next).collect()
}

impl Bed {
    pub(crate) fn new(strategy: StrategyName, members: Vec<Member<MockService>>) -> Self {
        let pool = Arc::new(Pool::new());
        pool.set_members(test_set(), members);
        Self {
            router: Router::new(pool.clone()).with_strategy(strategy),
            pool,
            flaws: Flaws::default(),
        }
    }

    pub(crate) fn by(strategy: StrategyName, words: &str) -> Self {
        let bed = Self::new(strategy, Vec::new());
        bed.set_servers(words);
        bed
    }

    /// By the default strategy.
    pub(crate) fn of(words: &str) -> Self {
        Self::by(StrategyName::default(), words)
    }

    pub(crate) fn in_turn(words: &str) -> Self {
        Self::by(StrategyName::RoundRobin, words)
    }

    pub(crate) fn one(member: Member<MockService>) -> Self {
        Self::new(StrategyName::default(), vec![member])
    }

    /// By affinity, and in turn without a key.
    pub(crate) fn together(config: &AffinityConfig, words: &str) -> Self {
        let mut bed = Self::of(words);
        let strategy = Affinity::new(config)
            .unwrap()
            .with_fallback(StrategyName::RoundRobin.strategy())
            .with_events(bed.pool.events().clone());
        bed.router = bed.router.with_custom_strategy(Arc::new(strategy));
        bed
    }

    pub(crate) fn set_servers(&self, words: &str) {
        let members = with_flaws(words, &self.flaws);
        self.pool.set_members(test_set(), members);
    }

    pub(crate) fn spoil(&self, server: &str, flaw: ExclusionReason) {
        *self.flaws.lock()[server].lock() = Some(flaw);
    }

    pub(crate) fn heal(&self, server: &str) {
        *self.flaws.lock()[server].lock() = None;
    }

    /// Returns the server of a call, as if it were sent.
    pub(crate) fn decide(&self, call: &ToolCall) -> String {
        self.router.decide(call).unwrap().to_string()
    }

    /// Returns the servers in the order they would be asked.
    pub(crate) fn order(&self, call: &ToolCall) -> Vec<String> {
        let endpoints = self.router.candidates(call);
        endpoints.map(|one| one.server().to_string()).collect()
    }

    pub(crate) async fn send(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        self.router.clone().oneshot(call).await
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
