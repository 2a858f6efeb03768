//! What was seen of tools while they ran.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::infer::Volatile;
use tollgate_core::{
    Annotations, ArgumentRule, CacheRule, Condition, RepeatRule, ReplicaSetId, ServerId, Source,
    Tool, ToolDefinition, ToolName, When,
};
use tollgate_registry::{Changes, Registry, SetOptions};

fn set() -> ReplicaSetId {
    ReplicaSetId::new("orders").unwrap()
}

fn name(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

fn read(tool: &str, description: &str) -> Value {
    json!({"name": tool, "description": description, "annotations": {"readOnlyHint": true}})
}

fn list(registry: &Registry, server: &str, tools: &[Value]) -> Changes {
    let definitions = tools
        .iter()
        .map(|tool| ToolDefinition::from_json(tool.to_string()).unwrap())
        .collect();
    registry.register(&set(), &ServerId::new(server).unwrap(), definitions)
}

fn tool(registry: &Registry, tool: &str) -> Arc<Tool> {
    registry.catalogue().find(tool).unwrap().tool().clone()
}

fn is_kept(registry: &Registry, name: &str) -> bool {
    matches!(tool(registry, name).plan().cache, CacheRule::Store { .. })
}

fn seen() -> Volatile {
    Volatile::observed("two answers to equal calls differ")
}

fn two_tools() -> [Value; 2] {
    [read("get_order", "An order."), read("get_item", "An item.")]
}

#[test]
fn a_tool_whose_answers_change_is_not_kept_any_more_and_says_why() {
    let registry = Registry::new();
    list(&registry, "a", &two_tools());
    let (generation, other) = (
        registry.catalogue().generation(),
        tool(&registry, "get_item"),
    );
    let before = tool(&registry, "get_order");

    let changes = registry.observe(&before, seen());
    assert_eq!(changes.changed, [name("get_order")]);
    assert!(changes.added.is_empty() && changes.removed.is_empty());
    let after = tool(&registry, "get_order");
    assert_eq!(after.plan().cache, CacheRule::Bypass);
    assert_eq!(after.plan().repeat, RepeatRule::Safe);
    let volatile = after.resolved().volatility().unwrap();
    assert_eq!(volatile.source(), Source::Observed);
    assert!(volatile.reason().ends_with("equal calls differ"));
    assert_eq!(before.digest(), after.digest());

    let catalogue = registry.catalogue();
    assert!(catalogue.generation() > generation);
    assert!(Arc::ptr_eq(
        catalogue.find("get_item").unwrap().tool(),
        &other
    ));
    assert_eq!(registry.observations()[0].tool, name("get_order"));
    let again = registry.observe(&before, Volatile::observed("once more"));
    assert!(again.is_empty());
    assert_eq!(registry.catalogue().generation(), catalogue.generation());
}

#[test]
fn it_holds_while_the_definition_does() {
    let registry = Registry::new();
    list(&registry, "a", &two_tools());
    registry.observe(&tool(&registry, "get_order"), seen());

    assert!(list(&registry, "a", &two_tools()).is_empty());
    list(&registry, "b", &two_tools());
    registry.remove(&set(), &ServerId::new("a").unwrap());
    assert!(!is_kept(&registry, "get_order"));
    registry.remove(&set(), &ServerId::new("b").unwrap());
    list(&registry, "a", &two_tools());
    assert!(!is_kept(&registry, "get_order"), "a server that was away");

    let changed = list(
        &registry,
        "a",
        &[read("get_order", "An order, as of last night.")],
    );
    assert_eq!(changed.changed, [name("get_order")]);
    assert!(is_kept(&registry, "get_order"));
    assert!(registry.observations().is_empty());
    list(&registry, "a", &two_tools());
    assert!(
        is_kept(&registry, "get_order"),
        "what is forgotten does not come back"
    );
}

#[test]
fn what_was_seen_of_a_tool_that_is_gone_is_no_matter() {
    let registry = Registry::new();
    list(&registry, "a", &two_tools());
    let old = tool(&registry, "get_order");
    list(&registry, "a", &[read("get_order", "Another order.")]);
    assert!(registry.observe(&old, seen()).is_empty());
    assert!(is_kept(&registry, "get_order"));
    let elsewhere = Registry::new();
    assert!(elsewhere.observe(&old, seen()).is_empty());
}

#[test]
fn the_operator_takes_it_back() {
    let registry = Registry::new();
    list(&registry, "a", &two_tools());
    registry.observe(&tool(&registry, "get_order"), seen());
    let changes = registry.take_back(&set(), &name("get_order"));
    assert_eq!(changes.changed, [name("get_order")]);
    assert!(is_kept(&registry, "get_order"));
    assert!(registry.observations().is_empty());
    assert!(registry.take_back(&set(), &name("get_order")).is_empty());
}

#[test]
fn rules_over_arguments_and_options_of_its_listing_still_hold() {
    let registry = Registry::new();
    let mut options = SetOptions::default();
    let when = When::argument("format", Condition::equals("short")).unwrap();
    let cheap = Annotations::default().with_cost(1.0);
    let rule = ArgumentRule::new(when, cheap).unwrap();
    options.refinements.insert(name("get_order"), vec![rule]);
    registry.set_options(set(), options);
    list(&registry, "a", &two_tools());
    // not in force before the next listing
    registry.set_options(set(), SetOptions::default());
    registry.observe(&tool(&registry, "get_order"), seen());
    let tool = tool(&registry, "get_order");
    let rules = tool.refinements().rules();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].plan().cache, CacheRule::Bypass);
}
