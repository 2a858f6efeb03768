//! Laying one set of hints over another.

use callward_core::Annotations;
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::properties::any;

/// The hints as JSON has them: a map, in which what is absent is not there.
fn map(hints: &Annotations) -> Map<String, Value> {
    match serde_json::to_value(hints) {
        Ok(Value::Object(map)) => map,
        other => panic!("hints are an object, not {other:?}"),
    }
}

/// Laying over, said once more and plainly: keys replace keys, and lists of tags are joined.
fn laid_over(base: &Annotations, over: &Annotations) -> Map<String, Value> {
    let mut out = map(base);
    out.extend(map(over));
    if base.tags.is_some() || over.tags.is_some() {
        let mut tags: Vec<Value> = Vec::new();
        for tag in base.tags.iter().chain(&over.tags).flatten() {
            let tag = Value::from(tag.as_str());
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        out.insert("tags".into(), tags.into());
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn merging_does_not_depend_on_how_it_is_bracketed(
        a in any::hints(), b in any::hints(), c in any::hints(),
    ) {
        prop_assert_eq!(a.merge(&b).merge(&c), a.merge(&b.merge(&c)));
    }

    #[test]
    fn the_later_set_wins_field_by_field(a in any::hints(), b in any::hints()) {
        prop_assert_eq!(map(&a.merge(&b)), laid_over(&a, &b));
    }

    #[test]
    fn nothing_laid_over_or_under_changes_nothing(a in any::hints()) {
        let nothing = Annotations::default();
        // Tags lose their duplicates, whatever they are merged with.
        let mut once = a.clone();
        once.tags = once.tags.map(|tags| {
            let mut seen = Vec::new();
            tags.into_iter().for_each(|tag| if !seen.contains(&tag) { seen.push(tag) });
            seen
        });
        prop_assert_eq!(&a.merge(&nothing), &once);
        prop_assert_eq!(&nothing.merge(&a), &once);
        prop_assert_eq!(a.merge(&a), once);
    }
}
