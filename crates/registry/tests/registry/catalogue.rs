//! Listings and the catalogues made of them.

use std::collections::HashSet;
use std::sync::Arc;

use callward_core::{
    Annotations, ArgumentRule, Complexity, Condition, Effect, ReplicaSetId, ServerId, ToolCall,
    ToolDefinition, Trust, When,
};
use callward_registry::{Catalogue, Registry, SetOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

fn set(name: &str) -> ReplicaSetId {
    ReplicaSetId::new(name).unwrap()
}

fn server(name: &str) -> ServerId {
    ServerId::new(name).unwrap()
}

fn definitions(tools: &[Value]) -> Vec<ToolDefinition> {
    tools
        .iter()
        .map(|tool| ToolDefinition::from_json(tool.to_string()).unwrap())
        .collect()
}

fn named(names: &[&str]) -> Vec<ToolDefinition> {
    definitions(
        &names
            .iter()
            .map(|name| json!({"name": name}))
            .collect::<Vec<_>>(),
    )
}

fn client_names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue
        .entries()
        .iter()
        .map(|entry| entry.client_name())
        .collect()
}

#[test]
fn a_tool_is_found_by_each_of_its_names() {
    let registry = Registry::new();
    registry.set_options(set("fs"), SetOptions::default().with_prefix("files"));
    registry.register(&set("fs"), &server("fs"), named(&["read.text"]));
    let catalogue = registry.catalogue();
    let alias = catalogue.entries()[0].client_name().to_owned();
    assert!(alias.starts_with("files__read_text_"), "{alias}");
    for name in [
        &*alias,
        "files__read.text",
        "fs.read.text",
        "fs::read.text",
        "fs__read.text",
    ] {
        assert!(catalogue.find(name).is_some(), "{name}");
    }
    assert!(catalogue.find("read.text").is_none());
    assert_eq!(catalogue.similar("other.read_text"), [alias]);
}

#[test]
fn without_a_prefix_a_taken_name_gets_its_set_in_front() {
    let registry = Registry::new();
    registry.register(&set("a"), &server("a"), named(&["get"]));
    registry.register(&set("b"), &server("b"), named(&["get", "put"]));
    assert_eq!(
        client_names(&registry.catalogue()),
        ["get", "b__get", "put"]
    );
}

#[test]
fn a_taken_prefixed_name_falls_back_to_the_set() {
    let registry = Registry::new();
    for name in ["a", "b"] {
        registry.set_options(set(name), SetOptions::default().with_prefix("same"));
    }
    registry.register(&set("a"), &server("a"), named(&["get"]));
    registry.register(&set("b"), &server("b"), named(&["get"]));
    // the second set still has a name of its own to fall back on
    assert_eq!(client_names(&registry.catalogue()), ["same__get", "b__get"]);
}

#[test]
fn the_first_definition_counts_until_its_server_leaves() {
    let registry = Registry::new();
    let both = set("pair");
    let first = definitions(&[json!({"name": "get", "description": "one"})]);
    let second = definitions(&[json!({"name": "get", "description": "two"})]);
    registry.register(&both, &server("one"), first);
    let before = registry.catalogue();
    let changes = registry.register(&both, &server("two"), second);
    assert!(changes.is_empty(), "{changes:?}");
    let tool = |catalogue: &Catalogue| catalogue.entries()[0].tool().clone();
    assert!(Arc::ptr_eq(&tool(&before), &tool(&registry.catalogue())));
    assert!(
        registry
            .catalogue()
            .offers(&server("two"), tool(&before).name())
    );

    assert_eq!(registry.remove(&both, &server("one")).changed.len(), 1);
    assert_eq!(
        tool(&registry.catalogue()).definition().description(),
        Some("two")
    );
    assert_eq!(registry.remove(&both, &server("two")).removed.len(), 1);
    assert!(registry.catalogue().entries().is_empty());
}

#[test]
fn a_configured_tool_that_is_not_listed_is_refused_visibly() {
    let registry = Registry::new();
    let mut options = SetOptions::default();
    for name in ["get", "gte", "zap"] {
        let tool = name.parse().unwrap();
        options.overrides.insert(tool, Annotations::default());
    }
    registry.set_options(set("s"), options);
    assert_eq!(registry.catalogue().refused(), [], "nothing is listed yet");
    let odd = json!({"readOnlyHint": true, "destructiveHint": true});
    let listed = definitions(&[json!({"name": "zap", "annotations": odd})]);
    registry.register(&set("s"), &server("one"), listed);
    registry.register(&set("s"), &server("two"), named(&["get"]));
    let catalogue = registry.catalogue();
    let refused: Vec<_> = catalogue
        .refused()
        .iter()
        .map(|refusal| (refusal.tool.as_str(), refusal.reason.as_str()))
        .collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(refused[0].0, "zap");
    assert_eq!(refused[1].0, "gte");
    assert!(
        refused[1].1.contains("no server of its set lists it"),
        "{refused:?}"
    );
}

#[test]
fn contradictory_hints_and_duplicate_names_are_refused() {
    let registry = Registry::new();
    let listed = definitions(&[
        json!({"name": "zap", "annotations": {"readOnlyHint": true, "destructiveHint": true}}),
        json!({"name": "slow", "annotations": {"estimatedDuration": -1, "costHint": -2}}),
        json!({"name": "get"}),
        json!({"name": "get"}),
    ]);
    registry.register(&set("s"), &server("s"), listed);
    let catalogue = registry.catalogue();
    assert_eq!(client_names(&catalogue), ["get"]);
    let reasons: Vec<String> = catalogue
        .refused()
        .iter()
        .map(|r| format!("{}: {}", r.tool, r.reason))
        .collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(
        reasons[0].starts_with("zap: readOnlyHint and destructiveHint"),
        "{reasons:?}"
    );
    assert!(reasons[1].contains("estimatedDuration") && reasons[1].contains("costHint"));
    assert!(reasons[2].contains("listed twice"));
}

#[test]
fn a_task_only_tool_is_refused() {
    let registry = Registry::new();
    let task = |support| json!({"name": support, "execution": {"taskSupport": support}});
    let listed = definitions(&["required", "optional", "forbidden"].map(task));
    registry.register(&set("jobs"), &server("jobs"), listed);
    let catalogue = registry.catalogue();
    assert_eq!(client_names(&catalogue), ["optional", "forbidden"]);
    let [refusal] = catalogue.refused() else {
        panic!("one tool is refused")
    };
    assert_eq!(refusal.tool.as_str(), "required");
    assert!(refusal.reason.contains("taskSupport"), "{}", refusal.reason);
}

#[test]
fn operator_overrides_win_and_trust_is_applied() {
    let effect = |options: SetOptions| {
        let registry = Registry::new();
        registry.set_options(set("s"), options);
        let tool = json!({"name": "get_x", "annotations": {"readOnlyHint": true}});
        registry.register(&set("s"), &server("s"), definitions(&[tool]));
        registry.catalogue().entries()[0].tool().plan().effect
    };
    assert_eq!(effect(SetOptions::default()), Effect::ReadOnly);
    let mut untrusted = SetOptions::default();
    untrusted.trust = Trust::Untrusted;
    assert_eq!(effect(untrusted.clone()), Effect::Destructive);
    let said = Annotations::default().with_read_only(true);
    untrusted.overrides.insert("get_x".parse().unwrap(), said);
    assert_eq!(effect(untrusted), Effect::ReadOnly);
}

#[test]
fn argument_rules_refine_a_tool_and_a_new_rule_is_a_change() {
    let rule = |action: &str| {
        ArgumentRule::new(
            When::argument("action", Condition::equals(action)).unwrap(),
            Annotations::default().with_read_only(true),
        )
        .unwrap()
    };
    let registry = Registry::new();
    let register = |rules: Vec<ArgumentRule>| {
        let mut options = SetOptions::default();
        options.refinements.insert("tabs".parse().unwrap(), rules);
        registry.set_options(set("s"), options);
        registry.register(&set("s"), &server("s"), named(&["tabs", "other"]))
    };
    let effect = |tool: &str, arguments: &'static str| {
        let tool = registry.catalogue().find(tool).unwrap().tool().clone();
        ToolCall::new(tool, arguments).plan().effect
    };
    register(vec![rule("list")]);
    assert_eq!(effect("tabs", r#"{"action":"list"}"#), Effect::ReadOnly);
    assert_eq!(effect("tabs", r#"{"action":"show"}"#), Effect::Mutating);
    assert_eq!(effect("other", r#"{"action":"list"}"#), Effect::Mutating);

    // the tool's own plan is the same, but not what its calls get
    let changes = register(vec![rule("show")]);
    assert_eq!(changes.changed, ["tabs".parse().unwrap()]);
    assert_eq!(effect("tabs", r#"{"action":"show"}"#), Effect::ReadOnly);
    assert!(register(vec![rule("show")]).is_empty());
}

#[test]
fn inference_uses_the_other_tools_of_the_server() {
    let registry = Registry::new();
    let register = |open: bool| {
        let listed = definitions(&[
            json!({"name": "create_note"}),
            json!({"name": "create_page", "annotations": {"openWorldHint": open}}),
        ]);
        registry.register(&set("s"), &server("s"), listed)
    };
    let open = || {
        let catalogue = registry.catalogue();
        let note = catalogue.find("create_note").unwrap().tool();
        note.resolved().annotations().open_world_hint
    };
    register(true);
    assert_eq!(open(), Some(true));
    // the neighbour says otherwise now, and where records of its calls belong is part of a plan
    let changes = register(false);
    assert_ne!(open(), Some(true));
    let both = ["create_note", "create_page"].map(|name| name.parse().unwrap());
    assert_eq!(changes.changed, both);

    // so it is with the operator's word, which explanations name
    let mut options = SetOptions::default();
    let medium = Annotations::default().with_complexity(Complexity::Medium);
    let note = "create_note".parse().unwrap();
    options.overrides.insert(note, medium);
    registry.set_options(set("s"), options);
    assert!(register(false).is_empty());
    let catalogue = registry.catalogue();
    let note = catalogue.find("create_note").unwrap().tool();
    let hints = note.resolved().annotations();
    assert_eq!(hints.complexity, Some(Complexity::Medium));
}

#[test]
fn listed_bytes_are_the_servers_except_the_name() {
    let raw = r#"{"execution":{"taskSupport":"optional"},"name":"get","annotations":{"destructiveHint":false}}"#;
    let registry = Registry::new();
    registry.set_options(set("s"), SetOptions::default().with_prefix("s"));
    let definition = ToolDefinition::from_json(raw).unwrap();
    registry.register(&set("s"), &server("s"), vec![definition]);
    let expected = raw.replace(r#""get""#, r#""s__get""#);
    assert_eq!(
        &registry.catalogue().entries()[0].listed()[..],
        expected.as_bytes()
    );
}

#[test]
fn what_a_server_lists_under_our_keys_is_found_apart() {
    let raw = r#"{"name":"get", "_meta":{"io.callward/plans":{"get":1},"a":2},"x":{"io.callward/plans":3}}"#;
    let registry = Registry::new();
    registry.set_options(set("s"), SetOptions::default().with_prefix("s"));
    let definition = ToolDefinition::from_json(raw).unwrap();
    registry.register(&set("s"), &server("s"), vec![definition]);
    assert_eq!(
        &registry.catalogue().entries()[0].listed()[..],
        br#"{"name":"s__get", "_meta":{"a":2,"io.callward/upstream":{"io.callward/plans":{"get":1}}},"x":{"io.callward/plans":3}}"#
    );
}

proptest! {
    #[test]
    fn names_are_unique_stable_ordered_and_short(
        tools in prop::collection::btree_set("[a-z_]{1,90}", 1..20),
        prefix in "[a-z][a-z0-9-]{0,20}",
    ) {
        // no order but the server's own
        let listed: Vec<&str> = tools.iter().rev().map(String::as_str).collect();
        let names = |listed: &[&str]| {
            let registry = Registry::new();
            registry.set_options(set("s"), SetOptions::default().with_prefix(prefix.clone()));
            registry.register(&set("s"), &server("s"), named(listed));
            let catalogue = registry.catalogue();
            let pairs = catalogue.entries().iter();
            pairs.map(|e| (e.tool().name().to_string(), e.client_name().to_owned())).collect::<Vec<_>>()
        };
        let all = names(&listed);
        prop_assert_eq!(all.len(), tools.len());
        prop_assert!(all.iter().all(|(_, name)| name.chars().count() <= 64));
        prop_assert_eq!(all.iter().map(|(_, name)| name).collect::<HashSet<_>>().len(), all.len());
        let order: Vec<&str> = all.iter().map(|(tool, _)| tool.as_str()).collect();
        prop_assert_eq!(&order, &listed);
        // one tool's name does not depend on the others
        let one = names(&listed[..1]);
        prop_assert!(all.contains(&one[0]));
    }
}

#[test]
fn unchanged_entries_are_reused() {
    let registry = Registry::new();
    registry.register(&set("a"), &server("a"), named(&["read"]));
    let before = registry.catalogue();
    registry.register(&set("b"), &server("b"), named(&["write"]));
    let after = registry.catalogue();
    assert!(Arc::ptr_eq(
        before.find("a.read").unwrap(),
        after.find("a::read").unwrap()
    ));
    // a name that changes is another entry
    registry.change_options(&set("a"), SetOptions::default().with_prefix("a"));
    assert_eq!(client_names(&registry.catalogue()), ["a__read", "write"]);
    assert_eq!(
        &registry.catalogue().find("a.read").unwrap().listed()[..],
        br#"{"name":"a__read"}"#
    );
}

#[test]
fn a_misspelt_name_is_suggested_and_an_endless_one_is_not() {
    let registry = Registry::new();
    registry.set_options(set("a"), SetOptions::default().with_prefix("files"));
    registry.register(&set("a"), &server("a"), named(&["read_text", "write"]));
    let catalogue = registry.catalogue();
    for name in [
        "read_txt",
        "files__read_texts",
        "file.read_text",
        "a::raed_text",
    ] {
        assert_eq!(catalogue.similar(name), ["files__read_text"], "{name}");
    }
    assert!(catalogue.similar("delete").is_empty());
    assert!(catalogue.similar(&"read_text".repeat(1000)).is_empty());
}
