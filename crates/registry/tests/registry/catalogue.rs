//! Listings and the catalogues made of them, while servers and options come and go.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Annotations, ArgumentRule, Caching, Complexity, Condition, Effect, ToolCall, Trust, When,
};
use callward_registry::{Catalogue, SetOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bed::{
    Bed, assert_refused, client_names, definition, name, overriding, prefixed, server, set,
};

#[test]
fn a_tool_is_found_by_each_of_its_names() {
    let bed = Bed::with([("fs", prefixed("files"))]);
    bed.names("fs", &["read.text", "move_file"]);
    let catalogue = bed.catalogue();
    let alias = client_names(&catalogue)[0];
    assert!(alias.starts_with("files__read_text_"), "{alias}");
    let others = "files__read.text fs.read.text fs::read.text fs__read.text";
    for name in others.split(' ').chain([alias]) {
        assert!(catalogue.find(name).is_some(), "{name}");
    }
    assert!(catalogue.find("read.text").is_none());
    // a misspelt name is suggested, and an endless one is not
    for name in "move_fil files__move_files file.move_file a::mvoe_file".split(' ') {
        assert_eq!(catalogue.similar(name), ["files__move_file"], "{name}");
    }
    assert!(catalogue.similar("delete").is_empty());
    assert!(catalogue.similar(&"move_file".repeat(1000)).is_empty());
}

#[test]
fn a_taken_name_gets_its_set_in_front() {
    let bed = Bed::with([("a", prefixed("s")), ("b", prefixed("s"))]);
    bed.names("a", &["get"]);
    bed.names("b", &["get", "put"]);
    let expected = ["s__get", "b__get", "s__put"];
    assert_eq!(client_names(&bed.catalogue()), expected);
}

#[test]
fn the_first_definition_counts_until_its_server_leaves() {
    let bed = Bed::default();
    let both = set("pair");
    let list = |by: &str| {
        let get = json!({"name": "get", "description": by});
        bed.add("pair", by, vec![definition(get)])
    };
    list("one");
    let before = bed.tool("get");
    let changes = list("two");
    assert!(changes.is_empty(), "{changes:?}");
    assert!(Arc::ptr_eq(&before, &bed.tool("get")));
    assert!(bed.catalogue().offers(&server("two"), before.name()));

    assert_eq!(bed.remove(&both, &server("one")).changed.len(), 1);
    let description = bed.tool("get").definition.description.clone();
    assert_eq!(description.as_deref(), Some("two"));
    assert_eq!(bed.remove(&both, &server("two")).removed.len(), 1);
    assert!(bed.catalogue().entries().is_empty());
}

#[test]
fn a_configured_tool_that_is_not_listed_is_refused_visibly() {
    let mut options = SetOptions::default();
    for tool in ["get", "gte", "zap"] {
        options.overrides.insert(name(tool), Annotations::default());
    }
    let bed = Bed::with([("s", options)]);
    assert_refused(&bed.refusals(), &[]);
    let odd = json!({"readOnlyHint": true, "destructiveHint": true});
    bed.list("s", [json!({"name": "zap", "annotations": odd})]);
    bed.add("s", "two", vec![definition(json!({"name": "get"}))]);
    let refusals = [
        "zap: ",
        "gte: it is configured, but no server of its set lists it",
    ];
    assert_refused(&bed.refusals(), &refusals);
}

#[test]
fn contradictory_hints_and_duplicate_names_are_refused() {
    let bed = Bed::default();
    let tools = [
        json!({"name": "zap", "annotations": {"readOnlyHint": true, "destructiveHint": true}}),
        json!({"name": "slow", "annotations": {"estimatedDuration": -1, "costHint": -2}}),
        json!({"name": "get"}),
        json!({"name": "get"}),
        json!({"name": "wait", "execution": {"taskSupport": "required"}}),
    ];
    bed.list("s", tools);
    assert_eq!(client_names(&bed.catalogue()), ["get", "wait"]);
    let refusals = bed.refusals();
    let expected = [
        "zap: readOnlyHint and destructiveHint",
        "slow: ",
        "get: listed twice",
    ];
    assert_refused(&refusals, &expected);
    assert!(refusals[1].contains("estimatedDuration") && refusals[1].contains("costHint"));
}

#[test]
fn operator_overrides_are_believed_of_an_untrusted_server() {
    let reads = Annotations::default().with_read_only(true);
    for (hints, effect) in [
        (Annotations::default(), Effect::Destructive),
        (reads, Effect::ReadOnly),
    ] {
        let mut options = overriding("get_x", hints);
        options.trust = Trust::Untrusted;
        let bed = Bed::with([("s", options)]);
        bed.list(
            "s",
            [json!({"name": "get_x", "annotations": {"readOnlyHint": true}})],
        );
        assert_eq!(bed.tool("get_x").plan().effect, effect);
    }
}

#[test]
fn argument_rules_refine_a_tool_and_a_new_rule_is_a_change() {
    let rule = |action: &str| {
        let when = When::argument("action", Condition::equals(action)).unwrap();
        ArgumentRule::new(when, Annotations::default().with_read_only(true)).unwrap()
    };
    let bed = Bed::default();
    let change = |action: &str| {
        let mut options = SetOptions::default();
        options.refinements.insert(name("tabs"), vec![rule(action)]);
        bed.change_options(&set("s"), options)
    };
    let effect = |tool: &str, arguments: &'static str| {
        ToolCall::new(bed.tool(tool), arguments).plan().effect
    };
    change("list");
    bed.names("s", &["tabs", "other"]);
    assert_eq!(effect("tabs", r#"{"action":"list"}"#), Effect::ReadOnly);
    assert_eq!(effect("tabs", r#"{"action":"show"}"#), Effect::Mutating);
    assert_eq!(effect("other", r#"{"action":"list"}"#), Effect::Mutating);

    // the tool's own plan is the same, but not what its calls get
    assert_eq!(change("show").changed, [name("tabs")]);
    assert_eq!(effect("tabs", r#"{"action":"show"}"#), Effect::ReadOnly);
    assert!(change("show").is_empty());
}

#[test]
fn inference_uses_the_other_tools_of_the_server() {
    let bed = Bed::default();
    let register = |open: bool| {
        let page = json!({"name": "create_page", "annotations": {"openWorldHint": open}});
        bed.list("s", [json!({"name": "create_note"}), page])
    };
    let hints = || bed.tool("create_note").resolved.annotations.clone();
    register(true);
    assert_eq!(hints().open_world_hint, Some(true));
    // the neighbour says otherwise now, and where records of its calls belong is part of a plan
    let changes = register(false);
    assert_ne!(hints().open_world_hint, Some(true));
    assert_eq!(changes.changed, ["create_note", "create_page"].map(name));

    // so it is with the operator's word, which explanations name
    let medium = Annotations::default().with_complexity(Complexity::Medium);
    let changes = bed.change_options(&set("s"), overriding("create_note", medium));
    assert!(changes.is_empty());
    assert_eq!(hints().complexity, Some(Complexity::Medium));
}

#[test]
fn listed_bytes_are_the_servers_except_the_name_and_our_keys() {
    for (raw, listed) in [
        (
            r#"{"execution":{"taskSupport":"optional"},"name":"get","annotations":{"destructiveHint":false}}"#,
            r#"{"execution":{"taskSupport":"optional"},"name":"s__get","annotations":{"destructiveHint":false}}"#,
        ),
        (
            r#"{"name":"get", "_meta":{"io.callward/plans":{"get":1},"a":2},"x":{"io.callward/plans":3}}"#,
            r#"{"name":"s__get", "_meta":{"a":2,"io.callward/upstream":{"io.callward/plans":{"get":1}}},"x":{"io.callward/plans":3}}"#,
        ),
    ] {
        let bed = Bed::with([("s", prefixed("s"))]);
        bed.add("s", "s", vec![definition(raw)]);
        assert_eq!(bed.catalogue().entries()[0].listed(), listed.as_bytes());
    }
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
            let bed = Bed::with([("s", prefixed(&prefix))]);
            bed.names("s", listed);
            let catalogue = bed.catalogue();
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
    let bed = Bed::default();
    let read = |catalogue: &Catalogue, name: &str| catalogue.find(name).unwrap().clone();
    bed.names("a", &["read"]);
    let before = read(&bed.catalogue(), "a.read");
    bed.names("b", &["write"]);
    assert!(Arc::ptr_eq(&before, &read(&bed.catalogue(), "a::read")));
    // a name that changes is another entry
    bed.change_options(&set("a"), prefixed("a"));
    let catalogue = bed.catalogue();
    assert_eq!(client_names(&catalogue), ["a__read", "write"]);
    let listed = read(&catalogue, "a.read").listed().clone();
    assert_eq!(&listed[..], br#"{"name":"a__read"}"#);
}

fn two_tools() -> [Value; 2] {
    let read = |name| json!({"name": name, "annotations": {"readOnlyHint": true}});
    [read("get_order"), read("get_item")]
}

#[test]
fn new_options_apply_to_listed_tools_and_change_no_others() {
    let bed = Bed::default();
    let odd = json!({"readOnlyHint": true, "destructiveHint": true});
    let zap = json!({"name": "zap", "annotations": odd});
    bed.list("shop", two_tools().into_iter().chain([zap]));
    let (order, item) = (bed.tool("get_order"), bed.tool("get_item"));
    let refused = bed.refusals();
    assert_eq!((order.plan().effect, refused.len()), (Effect::ReadOnly, 1));

    let hints = Annotations::default()
        .with_read_only(false)
        .with_destructive(true);
    let changes = bed.change_options(&set("shop"), overriding("get_order", hints));
    assert_eq!(changes.changed, [name("get_order")]);
    assert!(changes.added.is_empty() && changes.removed.is_empty());
    let now = bed.tool("get_order");
    assert_eq!(now.plan().effect, Effect::Destructive);
    assert!(Arc::ptr_eq(&item, &bed.tool("get_item")));
    assert_eq!(bed.refusals(), refused);

    let reset = || bed.change_options(&set("shop"), SetOptions::default());
    assert_eq!(reset().changed, [name("get_order")]);
    assert_eq!(bed.tool("get_order").plan(), order.plan());
    assert!(reset().is_empty());
}

#[test]
fn a_removed_set_leaves_nothing() {
    let bed = Bed::with([("shop", prefixed("shop"))]);
    bed.list("shop", two_tools());
    let generation = bed.catalogue().generation();

    let changes = bed.forget(&set("shop"));
    assert_eq!(changes.removed, [name("get_item"), name("get_order")]);
    let catalogue = bed.catalogue();
    assert!(catalogue.generation() > generation);
    assert!(catalogue.entries().is_empty() && catalogue.find("shop.get_order").is_none());
    assert_eq!(catalogue.offered_by(&server("shop")), 0);
    let again = bed.forget(&set("shop"));
    assert!(again.is_empty(), "and not announced twice");

    // a tool that comes back under the name starts afresh
    bed.list("shop", two_tools());
    assert_eq!(client_names(&bed.catalogue())[0], "get_order");
}

#[test]
fn a_server_ttl_does_not_apply_to_volatile_tools() {
    let ttl = Duration::from_secs(60);
    let mut options = SetOptions::default();
    options.caching = Some(Caching::For(ttl));
    let bed = Bed::with([("shop", options.clone())]);
    let clock = json!({"name": "get_current_time", "annotations": {"readOnlyHint": true}});
    bed.list("shop", [clock]);
    let kept = || bed.tool("get_current_time").plan().result_ttl();
    assert_eq!(kept(), None);
    let tool = name("get_current_time");
    options.tool_caching.insert(tool, Caching::For(ttl));
    bed.change_options(&set("shop"), options);
    assert_eq!(kept(), Some(ttl));
}
