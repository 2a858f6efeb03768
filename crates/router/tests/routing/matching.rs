//! Servers whose categories or capabilities match a tool's tags.

use std::collections::BTreeMap;
use std::sync::Arc;

use callward_core::Tool;
use callward_router::{ExclusionReason, Member, Router, StrategyName};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use serde_json::json;

use crate::bed::{Bed, counting, weight};

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

fn first(router: &Router<MockService>, tool: &Arc<Tool>) -> Option<String> {
    router
        .decide(&call(tool, json!({})))
        .map(|id| id.to_string())
}

/// This many servers without a word before those that are given.
fn among(plain: usize, members: Vec<Member<MockService>>) -> Vec<Member<MockService>> {
    let plain = (0..plain).map(|n| counting(&format!("plain{n}")));
    plain.chain(members).collect()
}

#[tokio::test(start_paused = true)]
async fn servers_of_a_category_that_the_tool_names_come_first() {
    // a few are compared; of many, the category's own are drawn
    for plain in [2, 100] {
        let in_category =
            |id: &str, category: &'static str| counting(id).with_categories([category]);
        let members = vec![
            in_category("maps", "maps"),
            in_category("weather", "weather"),
            in_category("both", "weather").with_categories(["maps", "weather"]),
        ];
        let router = Bed::new(StrategyName::Category, among(plain, members)).router();
        let mut got = BTreeMap::new();
        for _ in 0..300 {
            let server = first(&router, &tagged(["weather", "fast"])).unwrap();
            *got.entry(server).or_insert(0) += 1;
        }
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
        let router = Bed::new(StrategyName::Category, among(plain, vec![])).router();
        for tool in [tagged([]), tagged(["none"])] {
            let mut got = BTreeMap::new();
            for _ in 0..plain * 40 {
                *got.entry(first(&router, &tool)).or_insert(0) += 1;
            }
            assert_eq!(got.len(), plain, "{got:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_category_whose_servers_are_sick_or_too_light_is_left() {
    for plain in [2, 100] {
        let members = vec![
            counting("sick")
                .with_categories(["maps"])
                .with_gate(|_| Err(ExclusionReason::Unreachable)),
            counting("light")
                .with_categories(["maps"])
                .with_weight(weight(10)),
        ];
        let router = Bed::new(StrategyName::Category, among(plain, members)).router();
        assert_eq!(first(&router, &tagged(["maps"])).as_deref(), Some("light"));
        let delete = tool("delete").destructive();
        let delete = delete.hint(|hints| hints.tags = Some(vec!["maps".to_owned()]));
        let chosen = first(&router, &delete.build()).unwrap();
        assert!(chosen.starts_with("plain"), "{chosen}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_best_match_of_capabilities_comes_first() {
    for plain in [2, 100] {
        let members = vec![
            able("gpu", &["gpu"]),
            able("all", &["gpu", "ocr", "pdf"]),
            able("two", &["ocr", "pdf"]),
        ];
        let router = Bed::new(StrategyName::Capability, among(plain, members)).router();
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
