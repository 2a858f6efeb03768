//! Of two sources with a value for a field, the stronger decides.

use callward_core::resolve::{Hints, resolve};
use callward_core::{Annotations, Field, Source, Trust};
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
        let mut tags: Vec<&str> = Vec::new();
        for tag in base.tags.iter().chain(&over.tags).flatten() {
            if !tags.contains(&&**tag) {
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
    fn the_later_set_wins_field_by_field(a in any::hints(), b in any::hints(), c in any::hints()) {
        prop_assert_eq!(map(&a.merge(&b)), laid_over(&a, &b));
        prop_assert_eq!(a.merge(&b).merge(&c), a.merge(&b.merge(&c)));
    }

    /// Which effect a tool has is decided by three fields together; `resolve` has their cases.
    #[test]
    fn a_field_of_its_own_follows_the_strongest(
        inferred in any::inferred(),
        defaults in any::hints(),
        declared in any::hints(),
        operator in any::hints(),
    ) {
        let said = [
            (Source::ServerDefault, map(&defaults)),
            (Source::Declared, map(&declared)),
            (Source::Operator, map(&operator)),
        ];
        let resolved = resolve(&Hints {
            server_defaults: Some(&defaults),
            operator: Some(&operator),
            ..Hints::new(&inferred, &declared, Trust::Trusted)
        });
        let effective = map(&resolved.annotations);
        let together = [Field::ReadOnly, Field::Destructive, Field::Idempotent, Field::Tags];
        for field in Field::ALL.iter().filter(|field| !together.contains(field)) {
            let strongest = said.iter().rev().find_map(|(source, hints)| {
                Some((*source, hints.get(field.as_str())?))
            });
            if let Some((source, value)) = strongest {
                prop_assert_eq!(effective.get(field.as_str()), Some(value));
                let found = resolved.provenance_of(*field).map(|entry| entry.source);
                prop_assert_eq!(found, Some(source), "{}", field);
            }
        }
        let all = defaults.merge(&declared).merge(&operator);
        prop_assert_eq!(&resolved.annotations.vendor, &all.vendor);
        prop_assert_eq!(&resolved.annotations.tags, &all.tags);
    }

    #[test]
    fn the_operator_always_wins(
        inferred in any::inferred(),
        declared in any::hints(),
        operator in any::hints(),
        trust in any::trust(),
    ) {
        let resolved = resolve(&Hints {
            operator: Some(&operator),
            ..Hints::new(&inferred, &declared, trust)
        });
        let out = &resolved.annotations;
        let both = operator.read_only_hint == Some(true) && operator.destructive_hint == Some(true);
        if operator.read_only_hint.is_some() && operator.destructive_hint.is_some() && !both {
            prop_assert_eq!(out.read_only_hint, operator.read_only_hint);
            prop_assert_eq!(out.destructive_hint, operator.destructive_hint);
        }
        let (effective, stated) = (map(out), map(&operator));
        let together = [Field::ReadOnly, Field::Destructive, Field::Tags];
        for field in Field::ALL.iter().filter(|field| !together.contains(field)) {
            if let Some(wanted) = stated.get(field.as_str()) {
                prop_assert_eq!(effective.get(field.as_str()), Some(wanted), "{}", field);
            }
        }
    }
}
