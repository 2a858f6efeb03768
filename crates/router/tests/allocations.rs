//! A decision allocates nothing, whatever decides and however many servers there are.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use callward_core::{ReplicaSetId, ServerId, ToolCall, Weight};
use callward_router::{Member, Pool, Router, StrategyName};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Service, ServiceExt};

const STRATEGIES: [StrategyName; 8] = [
    StrategyName::Capability,
    StrategyName::Category,
    StrategyName::LeastConnections,
    StrategyName::PeakEwma,
    StrategyName::Priority,
    StrategyName::Random,
    StrategyName::RoundRobin,
    StrategyName::Weighted,
];

/// Which servers are fit.
#[derive(Debug, Clone, Copy)]
enum Fit {
    All,
    EverySecond,
    OnlyTheLast,
    None,
}

fn router(strategy: StrategyName, servers: usize, fit: Fit) -> Router<MockService> {
    let member = |n: usize| {
        let is_fit = match fit {
            Fit::All => true,
            Fit::EverySecond => n % 2 == 1,
            Fit::OnlyTheLast => n + 1 == servers,
            Fit::None => false,
        };
        let weight = Weight::new(if n.is_multiple_of(3) { 80 } else { 60 }).unwrap();
        Member::new(
            ServerId::new(format!("s{n}")).unwrap(),
            MockService::counting(),
        )
        .with_weight(weight)
        .with_categories(["caching", "eu"])
        .with_health(move |_| is_fit)
    };
    let pool = Arc::new(Pool::new());
    let set = ReplicaSetId::new("test").unwrap();
    pool.set_members(set, (0..servers).map(member).collect());
    Router::new(pool).with_strategy(strategy)
}

fn calls() -> [ToolCall; 3] {
    [
        tool("read")
            .read_only()
            .hint(|hints| hints.tags = Some(vec!["eu".to_owned(), "gpu".to_owned()]))
            .build(),
        tool("put").idempotent().build(),
        tool("delete").destructive().build(),
    ]
    .map(|tool| call(&tool, json!({"id": 1})))
}

#[tokio::test(start_paused = true)]
async fn a_decision_allocates_nothing() {
    for strategy in STRATEGIES {
        for servers in [1, 10, 1000] {
            for fit in [Fit::All, Fit::EverySecond, Fit::OnlyTheLast, Fit::None] {
                let mut router = router(strategy, servers, fit);
                for call in calls() {
                    // what is known of a tool is kept from its first call on
                    let answer = router.ready().await.unwrap().call(call.clone()).await;
                    let chosen = router.decide(&call);
                    assert_eq!(answer.is_ok(), chosen.is_some(), "{strategy:?}, {fit:?}");
                    let info = allocation_counter::measure(|| {
                        for _ in 0..20 {
                            let _ = std::hint::black_box(router.decide(&call));
                        }
                    });
                    assert_eq!(
                        info.count_total, 0,
                        "{strategy:?} of {servers} with {fit:?} fit: {info:?}"
                    );
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nor_does_one_among_busy_servers() {
    for strategy in STRATEGIES {
        for servers in [10, 1000] {
            let mut router = router(strategy, servers, Fit::EverySecond);
            let [read, ..] = calls();
            let held: Vec<_> = (0..servers * 3)
                .map(|_| router.call(read.clone()))
                .collect();
            let info = allocation_counter::measure(|| {
                for _ in 0..50 {
                    assert!(router.decide(&read).is_some());
                }
            });
            assert_eq!(info.count_total, 0, "{strategy:?} of {servers}: {info:?}");
            drop(held);
        }
    }
}
