//! The check of the fuzzer on stable Rust: its seeds, random tools and random bytes.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::check::tool_json;

mod check;

#[test]
fn every_seed_passes() -> std::io::Result<()> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/tool_json");
    let mut tools = 0;
    for seed in std::fs::read_dir(seeds)? {
        tools += usize::from(tool_json(&std::fs::read(seed?.path())?));
    }
    assert!(tools >= 8, "only {tools} of the seeds are tools");
    Ok(())
}

#[test]
fn an_invalid_tool_is_refused() {
    let invalid = r#"{ [] null {"name":1} {"name":"a","annotations":[]}"#;
    for text in invalid.split(' ').chain([""]) {
        assert!(!tool_json(text.as_bytes()), "{text}");
    }
}

/// One of these words.
fn one_of(words: &'static str) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words.split(' ').collect::<Vec<_>>())
}

const WORDS: &str = "get list delete Delete create update or and not next user sql QUERY search \
    permanently without file url löschen 取得 2 .";

/// Text a tool may have: of words that mean something, or any at all.
fn text() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(one_of(WORDS), 0..8);
    prop_oneof![
        3 => (words, prop::sample::select(vec!["_", " ", "-", "", ". "]))
            .prop_map(|(words, mark)| words.join(mark)),
        1 => "(?s).{0,40}",
    ]
}

/// Any JSON, not too deep.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn hint() -> impl Strategy<Value = (&'static str, Value)> {
    let flag = one_of(
        "readOnlyHint readOnly destructiveHint idempotentHint openWorldHint openWorld \
        requiresConfirmation auditRequired",
    );
    let number = one_of("estimatedDuration rateLimitHint costHint");
    let word = prop::sample::select(vec![
        ("complexity", "complex"),
        ("securityLevel", "restricted"),
        ("securityLevel", "public"),
        ("title", "T"),
        ("x-team", "a"),
    ]);
    prop_oneof![
        4 => (flag, any::<bool>()).prop_map(|(name, hint)| (name, hint.into())),
        2 => (number, any::<f64>()).prop_map(|(name, value)| (name, value.into())),
        1 => word.prop_map(|(name, value)| (name, value.into())),
        1 => prop::collection::vec(text(), 0..3).prop_map(|tags| ("tags", tags.into())),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        one_of("action operation sql command query path").prop_map(str::to_owned),
        text(),
    ];
    let property = prop_oneof![
        Just(json!({"type": "string"})),
        prop::collection::vec(text(), 0..4).prop_map(|all| json!({"type": "string", "enum": all})),
        anything(),
    ];
    prop::collection::btree_map(name, property, 0..4)
        .prop_map(|all| json!({"type": "object", "properties": all}))
}

/// A tool, and what may be wrong with it: one member replaced, added or gone.
fn tool() -> impl Strategy<Value = String> {
    let member = one_of("name title description inputSchema annotations _meta");
    let change = prop::option::weighted(0.3, (member, prop::option::of(anything())));
    let hints = prop::collection::vec(hint(), 0..7);
    (text(), prop::option::of(text()), schema(), hints, change).prop_map(
        |(name, description, schema, hints, change)| {
            let mut tool = Map::new();
            tool.insert("name".into(), name.into());
            tool.insert("description".into(), description.into());
            tool.insert("inputSchema".into(), schema);
            let hints: Map<String, Value> = hints
                .into_iter()
                .map(|(name, hint)| (name.to_owned(), hint))
                .collect();
            tool.insert("annotations".into(), hints.into());
            match change {
                Some((member, Some(value))) => drop(tool.insert(member.to_owned(), value)),
                Some((member, None)) => drop(tool.remove(member)),
                None => {}
            }
            Value::from(tool).to_string()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn any_tool_passes(tool in tool()) {
        tool_json(tool.as_bytes());
    }

    /// Bytes of a tool lost, doubled or exchanged: mostly no JSON any more, sometimes odd JSON.
    #[test]
    fn a_damaged_tool_passes(
        tool in tool(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<Option<u8>>()), 1..4),
    ) {
        let mut tool = tool.into_bytes();
        for (place, byte) in damage {
            let place = place.index(tool.len().max(1));
            match (tool.get_mut(place), byte) {
                (Some(at), Some(byte)) => *at = byte,
                (Some(_), None) => drop(tool.remove(place)),
                (None, _) => {}
            }
        }
        tool_json(&tool);
    }

    #[test]
    fn any_bytes_pass(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        tool_json(&bytes);
    }
}
