//! Servers whose categories or capabilities match a tool's tags.

use std::collections::BTreeMap;
use std::sync::Arc;

use callward_core::Tool;
use callward_router::{Member, Router, StrategyName};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use serde_json::json;

use crate::bed::{Bed, counting, members};

fn tagged<'a>(tags: impl IntoIterator<Item = &'a str>) -> Arc<Tool> {
    let tags = tags.into_iter().map(str::to_owned).collect();
    let tool = tool("read").read_only();
    tool.hint(|hints| hints.tags = Some(tags)).build()
}

fn able(id: &str, capabilities: &[&'static str]) -> Member<MockService> {
    counting(id).with_capabilities(capabilities.iter().copied())
}

/// Returns the servers in the order they would be asked.
fn order(router: &Router<MockService>, tool: &Arc<Tool>) -> Vec<String> {
    let call = call(tool, json!({}));
    let endpoints = router.candidates(&call);
    endpoints
        .map(|endpoint| endpoint.server().to_string())
        .collect()
}

fn first(router: &Router<MockService>, tool: &Arc<Tool>) -> String {
    let server = router.decide(&call(tool, json!({})));
    server.map_or_else(String::new, |id| id.to_string())
}

/// A router over this many servers without a word, and these. A few are compared; of many, two are
/// drawn.
fn among(plain: usize, by: StrategyName, others: Vec<Member<MockService>>) -> Router<MockService> {
    let plain = (0..plain).map(|n| counting(&format!("plain{n}")));
    Bed::new(by, plain.chain(others).collect()).router()
}

/// Returns how many of these calls each server gets.
fn share(router: &Router<MockService>, tool: &Arc<Tool>, calls: usize) -> BTreeMap<String, usize> {
    let mut got = BTreeMap::new();
    for _ in 0..calls {
        *got.entry(first(router, tool)).or_insert(0) += 1;
    }
    got
}

#[tokio::test(start_paused = true)]
async fn servers_of_a_category_that_the_tool_names_come_first() {
    for plain in [2, 100] {
        let both = counting("both").with_categories(["maps", "weather"]);
        let others = members("maps+maps weather+weather")
            .into_iter()
            .chain([both]);
        let router = among(plain, StrategyName::Category, others.collect());
        let got = share(&router, &tagged(["weather", "fast"]), 300);
        assert_eq!(got.len(), 2, "{got:?}");
        assert!(got["weather"] > 60 && got["both"] > 60, "{got:?}");

        let order = order(&router, &tagged(["weather", "maps"]));
        let mut head = order[..3].to_vec();
        head.sort();
        assert_eq!(head, ["both", "maps", "weather"]);
        assert_eq!(
            order.len(),
            (plain + 3).min(32),
            "the others come after them"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn where_no_category_is_named_every_server_is_as_good() {
    for plain in [3, 40] {
        let router = among(plain, StrategyName::Category, vec![]);
        for tool in [tagged([]), tagged(["none"])] {
            let got = share(&router, &tool, plain * 40);
            assert_eq!(got.len(), plain, "{got:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_category_whose_servers_are_sick_or_too_light_is_left() {
    for plain in [2, 100] {
        let others = members("sick+maps!unreachable light=10+maps");
        let router = among(plain, StrategyName::Category, others);
        assert_eq!(first(&router, &tagged(["maps"])), "light");
        let delete = tool("delete").destructive();
        let delete = delete.hint(|hints| hints.tags = Some(vec!["maps".to_owned()]));
        let chosen = first(&router, &delete.build());
        assert!(chosen.starts_with("plain"), "{chosen}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_best_match_of_capabilities_comes_first() {
    for plain in [2, 100] {
        let others = vec![
            able("gpu", &["gpu"]),
            able("all", &["gpu", "ocr", "pdf"]),
            able("two", &["ocr", "pdf"]),
        ];
        let router = among(plain, StrategyName::Capability, others);
        let order = order(&router, &tagged(["pdf", "ocr", "gpu"]));
        assert_eq!(order[..3], ["all", "two", "gpu"]);
        assert!(order[3].starts_with("plain"));
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
        let members = words.iter().enumerate().map(|(n, own)| {
            let own: Vec<_> = own.iter().map(|word| WORDS[*word]).collect();
            able(&format!("{n}"), &own).with_categories(own)
        });
        let bed = Bed::new(StrategyName::Capability, members.collect());
        let tool = tagged(tags.iter().map(|tag| WORDS[*tag]));
        for (strategy, most) in [(StrategyName::Capability, 5), (StrategyName::Category, 1)] {
            let matches = |id: &String| {
                let own = &words[id.parse::<usize>().unwrap()];
                own.intersection(&tags).count().min(most)
            };
            let order = order(&bed.router().with_strategy(strategy), &tool);
            prop_assert_eq!(order.len(), words.len().min(32));
            prop_assert!(order.is_sorted_by_key(|id| std::cmp::Reverse(matches(id))), "{order:?}");
        }
    }
}
