//! What one choice costs: at 1 to 1000 servers in a set, and at 1 to 1000 sets.
//!
//! Prints nanoseconds per call through the router to a service that answers at once, the clone of
//! the call included, as the fastest of many short rounds: what else the machine does can only
//! add. The first row is that service alone.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::expect_used, reason = "a bench fails by panicking")]

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use serde_json::json;
use tokio::time::Instant;
use tollgate_core::{ReplicaSetId, ServerId, ToolCall, ToolError, ToolOutput};
use tollgate_router::{Member, Pool, Router, StrategyName};
use tollgate_testkit::{AtOnce, call, tool};
use tower::Service;

/// Which members can take the call at once.
#[derive(Clone, Copy)]
enum Fitness {
    All,
    /// Every second one is unhealthy, so half of the choices compare all members.
    Half,
}

fn pool(sets: usize, servers: usize, fitness: Fitness) -> Arc<Pool<AtOnce>> {
    let pool = Arc::new(Pool::new());
    pool.update(|table| {
        for set in 0..sets {
            let members = (0..servers).map(|n| {
                let id = ServerId::new(format!("s{n}")).expect("a valid id");
                let fit = matches!(fitness, Fitness::All) || n % 2 == 0;
                Member::new(id, AtOnce::new(ToolOutput::text("ok"))).with_health(move |_| fit)
            });
            let id = ReplicaSetId::new(format!("set{set}")).expect("a valid id");
            table.set_members(id, members.collect());
        }
    });
    pool
}

/// Calls per round.
const CALLS: u32 = 500;

/// Returns the nanoseconds of one call in the fastest round.
fn measure<S>(mut service: S, call: &ToolCall, rounds: u32) -> f64
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
{
    let mut cx = Context::from_waker(Waker::noop());
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                let answer = pin!(service.call(call.clone())).poll(&mut cx);
                let _ = black_box(answer.map(|result| result.is_ok_and(|o| !o.is_error())));
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    // `cargo test --benches` only proves that it runs
    let rounds = if std::env::args().any(|arg| arg == "--bench") {
        300
    } else {
        1
    };
    let request = call(
        &tool("read").set("set0").read_only().build(),
        json!({"id": 1}),
    );
    let strategies = [
        ("round robin", StrategyName::RoundRobin),
        ("weighted", StrategyName::Weighted),
        ("least connections", StrategyName::LeastConnections),
    ];

    let alone = measure(AtOnce::new(ToolOutput::text("ok")), &request, rounds);
    println!("| ns per call | 1 | 10 | 100 | 1000 |");
    println!("| --- | --- | --- | --- | --- |");
    println!("| the service alone | {alone:.0} | | | |");
    for (fitness, note) in [
        (Fitness::All, "all healthy"),
        (Fitness::Half, "half healthy"),
    ] {
        for (name, strategy) in strategies {
            let row = [1, 10, 100, 1000].map(|servers| {
                let router = Router::new(pool(1, servers, fitness)).with_strategy(strategy);
                format!("{:.0}", measure(router, &request, rounds))
            });
            println!("| servers, {name}, {note} | {} |", row.join(" | "));
        }
    }
    let row = [1, 10, 100, 1000].map(|sets| {
        let router = Router::new(pool(sets, 2, Fitness::All));
        format!("{:.0}", measure(router, &request, rounds))
    });
    println!("| sets of two, least connections | {} |", row.join(" | "));
}
