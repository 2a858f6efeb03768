//! Servers whose categories or capabilities match a tool's tags.

use callward_router::StrategyName;
use callward_testkit::{call, tool};
use proptest::prelude::*;
use serde_json::json;

use crate::bed::{Bed, counting};

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
