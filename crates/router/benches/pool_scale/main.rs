//! What it costs to choose a server: for 1 to 10,000 servers, for one tool and for 100,000, on one
//! thread and on two, beside tower's balancer in the same run.
//!
//! `cargo bench -p callward-router --bench pool_scale`. All figures are nanoseconds a call, as the
//! fastest of many short rounds. Two threads share a router and all its servers; the slower one counts.
//!
//! *choice* is [`Router::decide`] alone: which server, nothing sent. *call* is a call through the router
//! to a service that answers at once, from the copy of the call to the dropped answer; *the service
//! alone* is what of that is not the router's. Callers have a hundred sessions, which affinity has
//! seen before. *tower* is `tower::balance::p2c` over the same services; it serves one caller, and is
//! shared through a buffer only, so it has no figure for two threads. It knows nothing of tools,
//! weights, health and effects, draws two and compares.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a bench fails by panicking, and its numbers are small"
)]

use std::hint::black_box;
use std::sync::Arc;

use callward_core::{
    Caller, Principal, ReplicaSetId, ServerId, SessionId, Tool, ToolCall, ToolOutput,
};
use callward_router::{Member, Pool, Router, StrategyName};
use callward_testkit::{AtOnce, call, tool};
use serde_json::json;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PeakEwma, PendingRequests};

use crate::measure::{Plan, Work, routed};

mod measure;

const SERVERS: [usize; 5] = [1, 10, 100, 1000, 10_000];
const TOOLS: usize = 100_000;
const SESSIONS: usize = 100;
const STRATEGIES: [StrategyName; 9] = [
    StrategyName::PeakEwma,
    StrategyName::RoundRobin,
    StrategyName::Affinity,
    StrategyName::LeastConnections,
    StrategyName::Weighted,
    StrategyName::Random,
    StrategyName::Category,
    StrategyName::Capability,
    StrategyName::Priority,
];

fn main() {
    // `cargo test --benches` only proves that it runs
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (rounds, servers, tools) = match is_bench {
        true => (200, &SERVERS[..], TOOLS),
        false => (1, &SERVERS[..2], 10),
    };
    let one = [tool("read").read_only().build()];
    let calls = calls(&one, SESSIONS * 10);
    let plan = Plan {
        rounds,
        calls: &calls,
    };
    for threads in [1, 2] {
        heading(threads, servers);
        let alone = || routed(service());
        row("the service alone", [plan.nanos(works(threads, alone))]);
        for name in STRATEGIES {
            let word = name.strategy().name().to_owned();
            let found = servers.iter().map(|servers| {
                let router = router(name, *servers);
                plan.nanos(works(threads, || choice(router.clone())))
            });
            row(&format!("{word}, choice"), found);
        }
        for name in STRATEGIES {
            let word = name.strategy().name().to_owned();
            let found = servers.iter().map(|servers| {
                let router = router(name, *servers);
                plan.nanos(works(threads, || routed(router.clone())))
            });
            row(&format!("{word}, call"), found);
        }
        if threads == 1 {
            let pending = |servers: &usize| plan.nanos(vec![tower_pending(*servers)]);
            row("tower, pending requests, call", servers.iter().map(pending));
            let ewma = |servers: &usize| plan.nanos(vec![tower_ewma(*servers)]);
            row("tower, peak ewma, call", servers.iter().map(ewma));
        }
        println!();
    }
    many_tools(rounds, servers, tools);
}

/// The same with so many tools that no call is of the tool of the one before.
fn many_tools(rounds: usize, servers: &[usize], tools: usize) {
    let tools: Vec<_> = (0..tools)
        .map(|n| tool(&format!("read_{n}")).read_only().build())
        .collect();
    let calls = calls(&tools, tools.len());
    let plan = Plan {
        rounds,
        calls: &calls,
    };
    println!("{} tools, one after another:\n", tools.len());
    let names = [
        StrategyName::PeakEwma,
        StrategyName::RoundRobin,
        StrategyName::Affinity,
    ];
    let all = names.map(|name| {
        let routers = servers.iter().map(|servers| {
            let router = router(name, *servers);
            // what is known of tools is known from calls
            routed(router.clone())(&calls);
            router
        });
        let word = name.strategy().name().to_owned();
        (word, routers.collect::<Vec<_>>())
    });
    for threads in [1, 2] {
        heading(threads, servers);
        let alone = || routed(service());
        row("the service alone", [plan.nanos(works(threads, alone))]);
        for (word, routers) in &all {
            let found = routers
                .iter()
                .map(|router| plan.nanos(works(threads, || choice(router.clone()))));
            row(&format!("{word}, choice"), found);
            let found = routers
                .iter()
                .map(|router| plan.nanos(works(threads, || routed(router.clone()))));
            row(&format!("{word}, call"), found);
        }
        println!();
    }
}

fn heading(threads: usize, servers: &[usize]) {
    let threads = match threads {
        1 => "one thread",
        _ => "two threads",
    };
    let columns: Vec<_> = servers.iter().map(|n| format!("{n} servers")).collect();
    println!("| {threads}, ns | {} |", columns.join(" | "));
    println!("| --- |{}", " ---: |".repeat(servers.len()));
}

fn row(what: &str, found: impl IntoIterator<Item = f64>) {
    let found: Vec<_> = found.into_iter().map(|ns| format!("{ns:.0}")).collect();
    println!("| {what} | {} |", found.join(" | "));
}

fn works(threads: usize, make: impl Fn() -> Work) -> Vec<Work> {
    (0..threads).map(|_| make()).collect()
}

fn choice(router: Router<AtOnce>) -> Work {
    Box::new(move |calls| {
        for call in calls {
            black_box(router.decide(call));
        }
    })
}

/// Calls of the tools in turn, from sessions in turn.
fn calls(tools: &[Arc<Tool>], count: usize) -> Vec<ToolCall> {
    let session = |n| {
        let caller = Caller::new(Principal::new("somebody"));
        Arc::new(caller.with_session(SessionId::new(format!("session-{n}"))))
    };
    let callers: Vec<_> = (0..SESSIONS).map(session).collect();
    let one = |n: usize| {
        let call = call(&tools[n % tools.len()], json!({"id": 1}));
        call.with_caller(callers[n % SESSIONS].clone())
    };
    (0..count).map(one).collect()
}

fn service() -> AtOnce {
    AtOnce::new(ToolOutput::text("ok"))
}

fn router(strategy: StrategyName, servers: usize) -> Router<AtOnce> {
    let member = |n| {
        let id = ServerId::new(format!("s{n}")).expect("a valid id");
        // as the facade asks a breaker
        Member::new(id, service()).with_health(|_| black_box(true))
    };
    let pool = Arc::new(Pool::new());
    let set = ReplicaSetId::new("test").expect("a valid id");
    pool.set_members(set, (0..servers).map(member).collect());
    Router::new(pool).with_strategy(strategy)
}

fn tower_pending(servers: usize) -> Work {
    let one = |_| PendingRequests::new(service(), CompleteOnResponse::default());
    let list: Vec<_> = (0..servers).map(one).collect();
    routed(Balance::new(ServiceList::new::<ToolCall>(list)))
}

fn tower_ewma(servers: usize) -> Work {
    // Finagle's and linkerd's defaults
    let (rtt, decay) = (std::time::Duration::from_millis(30), 10e9);
    let one = |_| PeakEwma::new(service(), rtt, decay, CompleteOnResponse::default());
    let list: Vec<_> = (0..servers).map(one).collect();
    routed(Balance::new(ServiceList::new::<ToolCall>(list)))
}
