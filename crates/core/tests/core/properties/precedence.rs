//! Of two sources with a value for a field, the stronger decides.

use callward_core::infer::{RuleSet, Subject};
use callward_core::resolve::{Hints, resolve};
use callward_core::{Annotations, Field, Inferred, Resolved, Source, Trust};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::properties::any;

/// Each field but `tags`, which are united, with two values it may have.
fn fields() -> [(Field, Value, Value); 12] {
    let flag = |field| (field, json!(true), json!(false));
    [
        (Field::Title, json!("a"), json!("b")),
        flag(Field::ReadOnly),
        flag(Field::Destructive),
        flag(Field::Idempotent),
        flag(Field::OpenWorld),
        flag(Field::RequiresConfirmation),
        (Field::EstimatedDuration, json!(10.0), json!(20.0)),
        (Field::RateLimitHint, json!(10.0), json!(20.0)),
        (Field::CostHint, json!(10.0), json!(20.0)),
        (Field::Complexity, json!("simple"), json!("complex")),
        flag(Field::AuditRequired),
        (Field::SecurityLevel, json!("public"), json!("restricted")),
    ]
}

fn stating(field: Field, value: &Value) -> Annotations {
    serde_json::from_value(json!({ field.as_str(): value })).unwrap_or_default()
}

fn effective(resolved: &Resolved, field: Field) -> Option<Value> {
    let all = serde_json::to_value(&resolved.annotations).ok()?;
    all.get(field.as_str()).cloned()
}

/// What comes out if each of the stronger sources says what it is given, in the order of strength.
fn settle(inferred: &Inferred, said: &[(Source, &Annotations)], trust: Trust) -> Resolved {
    let nothing = Annotations::default();
    let of = |source| {
        (said.iter().find(|(who, _)| *who == source)).map_or(&nothing, |(_, hints)| *hints)
    };
    resolve(&Hints {
        server_defaults: Some(of(Source::ServerDefault)),
        operator: Some(of(Source::Operator)),
        ..Hints::new(inferred, of(Source::Declared), trust)
    })
}

const STATED: [Source; 3] = [Source::ServerDefault, Source::Declared, Source::Operator];

#[test]
fn every_field_follows_the_stronger_of_any_two_sources() {
    // between them, these conclude every field that can be concluded
    let concluded = [
        (RuleSet::Standard, "get_user"),
        (RuleSet::Standard, "delete_user"),
        (RuleSet::Standard, "create_user"),
        (RuleSet::Neurolink, "deleteUser"),
        (RuleSet::Neurolink, "analyzeUser"),
        (RuleSet::Standard, "user"),
    ]
    .map(|(rules, name)| rules.infer(&Subject::new(name)));
    let both_ways = |(field, one, other): (Field, Value, Value)| {
        [(field, one.clone(), other.clone()), (field, other, one)]
    };
    for (field, weak, strong) in fields().into_iter().flat_map(both_ways) {
        for (at, weaker) in STATED.into_iter().enumerate() {
            for stronger in STATED.into_iter().skip(at + 1) {
                for inferred in &concluded {
                    let (below, above) = (stating(field, &weak), stating(field, &strong));
                    let said = [(weaker, &below), (stronger, &above)];
                    let resolved = settle(inferred, &said, Trust::Trusted);
                    let case = format!("{field}: {weaker} {weak}, {stronger} {strong}");
                    assert_eq!(
                        effective(&resolved, field).as_ref(),
                        Some(&strong),
                        "{case}"
                    );
                    let source = resolved.provenance_of(field).map(|entry| entry.source);
                    assert_eq!(source, Some(stronger), "{case}");
                    let is_settled = inferred.annotations.read_only_hint.is_none();
                    assert!(!is_settled || resolved.warnings.is_empty(), "{case}");
                }
            }
        }
    }
    let met = |field: &Field| {
        concluded
            .iter()
            .any(|found| found.evidence_for(*field).is_some())
    };
    assert_eq!(Field::ALL.iter().filter(|field| met(field)).count(), 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Whatever else is said: a field that has nothing to do with others is what the strongest
    /// source says that has a value for it.
    #[test]
    fn a_field_of_its_own_follows_the_strongest(
        inferred in any::inferred(),
        defaults in any::hints(),
        declared in any::hints(),
        operator in any::hints(),
    ) {
        let said = [
            (Source::ServerDefault, &defaults),
            (Source::Declared, &declared),
            (Source::Operator, &operator),
        ];
        let resolved = settle(&inferred, &said, Trust::Trusted);
        let together = [Field::ReadOnly, Field::Destructive, Field::Idempotent];
        for (field, ..) in fields() {
            if together.contains(&field) {
                continue;
            }
            let strongest = said.into_iter().rev().find_map(|(source, hints)| {
                let stated = serde_json::to_value(hints).ok()?.get(field.as_str())?.clone();
                Some((source, stated))
            });
            if let Some((source, value)) = strongest {
                prop_assert_eq!(effective(&resolved, field), Some(value));
                let found = resolved.provenance_of(field).map(|entry| entry.source);
                prop_assert_eq!(found, Some(source), "{}", field);
            }
        }
        let vendor = defaults.merge(&declared).merge(&operator).vendor;
        prop_assert_eq!(&resolved.annotations.vendor, &vendor);
        let tags = defaults.merge(&declared).merge(&operator).tags;
        prop_assert_eq!(&resolved.annotations.tags, &tags);
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
        let alone = |field: &Field| ![Field::ReadOnly, Field::Destructive].contains(field);
        for field in fields().map(|(field, ..)| field).into_iter().filter(alone) {
            let wanted = serde_json::to_value(&operator).unwrap().get(field.as_str()).cloned();
            if wanted.is_some() {
                prop_assert_eq!(effective(&resolved, field), wanted, "{}", field);
            }
        }
    }
}
