//! Servers whose categories or capabilities match a tool's tags.

use std::collections::BTreeSet;
use std::sync::Arc;

use callward_core::ToolCall;
use callward_router::StrategyName;
use callward_testkit::{ToolBuilder, call, tool};
use proptest::prelude::*;
use serde_json::json;

use crate::bed::{Bed, counting};

fn tagged<'a>(tool: ToolBuilder, tags: impl IntoIterator<Item = &'a str>) -> ToolCall {
    let tags = tags.into_iter().map(str::to_owned).collect();
    let tool = tool.hint(|hints| hints.tags = Some(tags)).build();
    call(&Arc::clone(&tool), json!({}))
}

#[tokio::test(start_paused = true)]
async fn all_servers_that_match_get_calls_and_a_category_of_sick_ones_is_left() {
    // a few are compared; of many, two are drawn
    for plain in [2, 100] {
        let plain: String = (0..plain).map(|n| format!("plain{n} ")).collect();
        let words = plain + "one+maps two+maps sick+weather!unreachable light=10+weather";
        let bed = Bed::by(StrategyName::Category, &words);
        let get = || tool("get").read_only();
        let first =
            |call: &ToolCall| -> BTreeSet<String> { (0..300).map(|_| bed.decide(call)).collect() };
        let both = ["one", "two"].map(str::to_owned);
        assert_eq!(first(&tagged(get(), ["maps", "fast"])), both.into());
        let light = ["light".to_owned()];
        assert_eq!(first(&tagged(get(), ["weather"])), light.into());
        let deletes = first(&tagged(tool("delete").destructive(), ["weather"]));
        assert!(!deletes.contains("light") && !deletes.contains("sick"));
        assert!(first(&tagged(get(), ["none"])).len() > 2);
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
        let call = tagged(tool("read").read_only(), tags.iter().map(|tag| WORDS[*tag]));
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
