//! How strategies spread calls: over any mix of tools, from any moment on, whatever is unfit.

use std::collections::BTreeMap;

use callward_core::ToolCall;
use callward_router::StrategyName;
use callward_testkit::{call, tool};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;
use serde_json::json;

use crate::bed::{Bed, counting, of};

/// Servers by their weights, of which some are unfit.
type Servers = Vec<(u32, bool)>;

fn bed(strategy: StrategyName, servers: &[(u32, bool)]) -> Bed {
    let words = servers.iter().enumerate();
    let words = words.map(|(n, (weight, fit))| match fit {
        true => format!("s{n}={weight}"),
        false => format!("s{n}={weight}!unreachable"),
    });
    Bed::by(strategy, &words.collect::<Vec<_>>().join(" "))
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

fn chosen(bed: &Bed, call: &ToolCall) -> usize {
    bed.decide(call)[1..].parse().unwrap()
}

/// Returns how many calls of a window each server gets, as a mix of tools is repeated.
fn window(bed: &Bed, mix: &[usize], start: usize, count: usize) -> BTreeMap<usize, u32> {
    let (calls, mut got) = (calls(), BTreeMap::new());
    for (n, kind) in mix.iter().cycle().take(start + count).enumerate() {
        let server = chosen(bed, &calls[*kind]);
        if n >= start {
            *got.entry(server).or_insert(0) += 1;
        }
    }
    got
}

fn mix() -> impl Generator<Value = Vec<usize>> {
    prop::collection::vec(0usize..5, 200)
}

fn fit(weights: &[u32]) -> Servers {
    weights.iter().map(|weight| (*weight, true)).collect()
}

fn servers(weights: impl Generator<Value = u32>, most: usize) -> impl Generator<Value = Servers> {
    prop::collection::vec((weights, prop::bool::weighted(0.6)), 1..most)
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
        let fit = servers.iter().filter(|(_, fit)| *fit).count();
        prop_assume!(fit > 0);
        let got = window(&bed(StrategyName::RoundRobin, &servers), &mix, start, fit);
        prop_assert!(got.keys().all(|server| servers[*server].1));
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
            let count = weights.iter().sum::<u32>() as usize;
            let got = window(&bed(strategy, &all), &mix, start, count).into_values();
            prop_assert_eq!(&got.collect::<Vec<_>>(), &weights, "{:?}", strategy);
        }
    }

    #[test]
    fn weighted_is_near_its_share_in_a_window_of_any_length(
        weights in prop::collection::vec(1u32..=100, 1..20),
        start in 0usize..200,
        count in 1usize..2000,
    ) {
        let got = window(&bed(StrategyName::Weighted, &fit(&weights)), &[0], start, count);
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
            let bed = bed(strategy, &all);
            let count = 4000;
            let mut got = vec![0u32; weights.len()];
            for _ in 0..count {
                got[chosen(&bed, &read)] += 1;
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
    fn the_order_has_each_candidate_once_and_moves_nothing(
        servers in servers(prop_oneof![0u32..=100, Just(50)], 30),
    ) {
        for strategy in StrategyName::ALL {
            let bed = bed(*strategy, &servers);
            for call in calls() {
                let least = call.plan().route.min_weight.unwrap_or(0);
                let admitted = |n: &usize| servers[*n].1 && servers[*n].0 >= least;
                let mut expected: Vec<_> = (0..servers.len())
                    .filter(admitted)
                    .map(|n| format!("s{n}"))
                    .collect();
                if expected.is_empty() {
                    continue;
                }
                let mut found = bed.order(&call);
                // among more, the last few are found by chance
                let is_fixed = *strategy == StrategyName::RoundRobin && servers.len() <= 16;
                if is_fixed || *strategy == StrategyName::Priority {
                    prop_assert_eq!(&bed.order(&call), &found, "{:?}", strategy);
                }
                if *strategy == StrategyName::Priority {
                    let weight = |id: &String| servers[id[1..].parse::<usize>().unwrap()].0;
                    prop_assert!(found.is_sorted_by_key(|id| std::cmp::Reverse(weight(id))));
                }
                // a standby is for when no other server can
                let is_standby = |id: &String| servers[id[1..].parse::<usize>().unwrap()].0 == 0;
                prop_assert!(found.is_sorted_by_key(is_standby), "{:?}", strategy);
                expected.sort();
                found.sort();
                prop_assert_eq!(found, expected, "{:?}", strategy);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_server_comes_before_a_better_match(
        words in prop::collection::vec(prop::collection::btree_set(0usize..5, 0..4), 1..40),
        tags in prop::collection::btree_set(0usize..7, 0..5),
    ) {
        const WORDS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
        let members = || words.iter().enumerate().map(|(n, own)| {
            let own: Vec<_> = own.iter().map(|word| WORDS[*word]).collect();
            let member = counting(&format!("{n}")).with_capabilities(own.clone());
            member.with_categories(own)
        });
        let tagged = tags.iter().map(|tag| WORDS[*tag].to_owned()).collect();
        let tool = tool("read").read_only().hint(|hints| hints.tags = Some(tagged));
        let call = call(&tool.build(), json!({}));
        for (strategy, most) in [(StrategyName::Capability, 5), (StrategyName::Category, 1)] {
            let matches = |id: &String| {
                let own = &words[id.parse::<usize>().unwrap()];
                own.intersection(&tags).count().min(most)
            };
            let order = Bed::new(strategy, members().collect()).order(&call);
            prop_assert_eq!(order.len(), words.len().min(32));
            prop_assert!(order.is_sorted_by_key(|id| std::cmp::Reverse(matches(id))), "{order:?}");
        }
    }
}
