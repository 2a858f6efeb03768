//! How strategies spread calls: over any mix of tools, from any moment on, whatever is unfit.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::collections::BTreeMap;

use callward_core::{ServerId, ToolCall};
use callward_router::{Router, StrategyName};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;
use serde_json::json;
use tower::Service;

use crate::bed::{Bed, counting, of, weight, well};

const ALL: [StrategyName; 8] = [
    StrategyName::Capability,
    StrategyName::Category,
    StrategyName::LeastConnections,
    StrategyName::PeakEwma,
    StrategyName::Priority,
    StrategyName::Random,
    StrategyName::RoundRobin,
    StrategyName::Weighted,
];

#[derive(Debug, Clone, Copy)]
struct Server {
    weight: u32,
    fit: bool,
}

fn router(strategy: StrategyName, servers: &[Server]) -> Router<MockService> {
    let members = servers.iter().enumerate().map(|(n, server)| {
        let fit = server.fit;
        counting(&format!("s{n}"))
            .with_weight(weight(server.weight))
            .with_gate(move |_| well(fit))
    });
    Bed::new(strategy, members.collect()).router()
}

/// A call of each effect, and another that reads.
fn calls() -> [ToolCall; 5] {
    ["read", "list", "put", "send", "delete"].map(|effect| {
        let tool = match effect {
            "list" => tool("list").read_only().build(),
            _ => of(effect),
        };
        call(&tool, json!({}))
    })
}

fn chosen(router: &Router<MockService>, call: &ToolCall) -> usize {
    let server = router.decide(call).unwrap();
    server.as_str()[1..].parse().unwrap()
}

/// Returns how many calls of a window each server gets, as a mix of tools is repeated.
fn window(
    router: &Router<MockService>,
    mix: &[usize],
    start: usize,
    count: usize,
) -> BTreeMap<usize, u32> {
    let (calls, mut got) = (calls(), BTreeMap::new());
    for (n, kind) in mix.iter().cycle().take(start + count).enumerate() {
        let server = chosen(router, &calls[*kind]);
        if n >= start {
            *got.entry(server).or_insert(0) += 1;
        }
    }
    got
}

fn order(router: &Router<MockService>, call: &ToolCall) -> Vec<String> {
    let endpoints = router.candidates(call);
    endpoints.map(|one| one.server().to_string()).collect()
}

fn mix() -> impl Generator<Value = Vec<usize>> {
    prop::collection::vec(0usize..5, 200)
}

fn fit(weights: &[u32]) -> Vec<Server> {
    let fit = |weight: &u32| Server {
        weight: *weight,
        fit: true,
    };
    weights.iter().map(fit).collect()
}

fn servers(
    weights: impl Generator<Value = u32>,
    most: usize,
) -> impl Generator<Value = Vec<Server>> {
    let server = (weights, prop::bool::weighted(0.6));
    let server = server.prop_map(|(weight, fit)| Server { weight, fit });
    prop::collection::vec(server, 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn round_robin_is_even_in_any_window_among_those_that_are_fit(
        servers in prop_oneof![
            servers(Just(70), 16),
            (1usize..60).prop_map(|count| fit(&vec![50; count])),
        ],
        start in 0usize..100,
        mix in mix(),
    ) {
        let fit = servers.iter().filter(|server| server.fit).count();
        prop_assume!(fit > 0);
        let router = router(StrategyName::RoundRobin, &servers);
        let got = window(&router, &mix, start, fit);
        prop_assert!(got.keys().all(|server| servers[*server].fit));
        prop_assert_eq!(got.len(), fit, "{:?}", got);
    }

    #[test]
    fn weighted_is_exact_in_any_window_of_all_weights(
        weights in prop::collection::vec(50u32..=100, 1..20),
        start in 0usize..200,
        mix in mix(),
    ) {
        let all = fit(&weights);
        for strategy in [StrategyName::Weighted, StrategyName::LeastConnections] {
            // the latter compares two of many, and takes turns among few that are idle
            if strategy == StrategyName::LeastConnections && weights.len() > 16 {
                continue;
            }
            let router = router(strategy, &all);
            let count = weights.iter().sum::<u32>() as usize;
            let got = window(&router, &mix, start, count).into_values();
            prop_assert_eq!(&got.collect::<Vec<_>>(), &weights, "{:?}", strategy);
        }
    }

    #[test]
    fn weighted_is_near_its_share_in_a_window_of_any_length(
        weights in prop::collection::vec(1u32..=100, 1..20),
        start in 0usize..200,
        count in 1usize..2000,
    ) {
        let router = router(StrategyName::Weighted, &fit(&weights));
        let got = window(&router, &[0], start, count);
        let sum: u32 = weights.iter().sum();
        // one after another, each would be off by its weight
        let bound = 3.0 + (count as f64).log2();
        for (n, weight) in weights.iter().enumerate() {
            let got = got.get(&n).copied().unwrap_or(0);
            let share = count as f64 * f64::from(*weight) / f64::from(sum);
            prop_assert!((f64::from(got) - share).abs() <= bound, "{got} for {share}");
        }
    }

    #[test]
    fn idle_unknown_servers_get_their_share_by_weight(
        weights in prop::collection::vec(1u32..=100, 1..30),
        seed in any::<u64>(),
    ) {
        let all = fit(&weights);
        let sum: u32 = weights.iter().sum();
        let [read, ..] = calls();
        for strategy in [StrategyName::PeakEwma, StrategyName::Random] {
            fastrand::seed(seed);
            let router = router(strategy, &all);
            let count = 4000;
            let mut got = vec![0u32; weights.len()];
            for _ in 0..count {
                got[chosen(&router, &read)] += 1;
            }
            for (got, weight) in got.iter().zip(&weights) {
                let share = f64::from(*weight) / f64::from(sum);
                let off = (f64::from(*got) - f64::from(count) * share).abs();
                // six standard deviations, and some more where there are few
                let bound = 6.0 * (f64::from(count) * share * (1.0 - share)).sqrt() + 6.0;
                prop_assert!(off <= bound, "{strategy:?}: {got} for {share}");
            }
        }
    }

    #[test]
    fn an_unfit_server_is_not_chosen_while_one_is_fit(
        servers in servers(prop_oneof![0u32..=100, Just(50)], 60),
        busy in prop::collection::vec(0usize..5, 0..20),
    ) {
        let calls = calls();
        for strategy in ALL {
            let mut router = router(strategy, &servers);
            // some are busy with it
            let _held: Vec<_> = busy.iter().map(|kind| router.call(calls[*kind].clone())).collect();
            for call in &calls {
                let least = call.plan().route.min_weight.unwrap_or(0);
                let admitted = |server: &&Server| server.weight >= least;
                let fit = servers.iter().filter(admitted).any(|server| server.fit);
                let found = router.decide(call);
                let place = |id: &ServerId| id.as_str()[1..].parse::<usize>().unwrap();
                match found.as_ref().map(place).map(|n| servers[n]) {
                    Some(server) => {
                        prop_assert!(server.weight >= least, "{strategy:?}: {server:?}");
                        prop_assert!(server.fit || !fit, "{strategy:?}: {server:?}");
                        // a standby is for when no other server can
                        let others = servers.iter().any(|other| other.fit && other.weight > 0);
                        prop_assert!(server.weight > 0 || !others, "{strategy:?}: {server:?}");
                    }
                    None => prop_assert!(!fit, "{strategy:?}"),
                }
            }
        }
    }

    #[test]
    fn the_order_has_each_candidate_once_and_moves_nothing(
        servers in servers(prop_oneof![0u32..=100, Just(50)], 30),
    ) {
        for strategy in ALL {
            let router = router(strategy, &servers);
            for call in calls() {
                let least = call.plan().route.min_weight.unwrap_or(0);
                let mut expected: Vec<_> = (0..servers.len())
                    .filter(|n| servers[*n].fit && servers[*n].weight >= least)
                    .map(|n| format!("s{n}"))
                    .collect();
                let mut found = order(&router, &call);
                if !expected.is_empty() {
                    // among more, the last few are found by chance
                    let is_fixed = strategy == StrategyName::RoundRobin && servers.len() <= 16;
                    if is_fixed || strategy == StrategyName::Priority {
                        prop_assert_eq!(&order(&router, &call), &found, "{:?}", strategy);
                    }
                    expected.sort();
                    found.sort();
                    prop_assert_eq!(found, expected, "{:?}", strategy);
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn by_priority_servers_come_in_the_order_of_their_weight() {
    let spec = [(20, true), (90, false), (60, true), (60, true)];
    let servers = spec.map(|(weight, fit)| Server { weight, fit });
    let router = router(StrategyName::Priority, &servers);
    let [read, .., delete] = calls();
    assert_eq!(order(&router, &read), ["s2", "s3", "s0"]);
    assert_eq!(order(&router, &delete), ["s2", "s3"]);
}
