//! Servers and options that come and go while the catalogue is in use.

use std::sync::Arc;
use std::time::Duration;

use callward_core::infer::RuleSet;
use callward_core::{
    Annotations, Caching, Effect, ReplicaSetId, ServerId, Tool, ToolDefinition, ToolName,
};
use callward_registry::{Changes, Registry, SetOptions};
use serde_json::{Value, json};

fn set() -> ReplicaSetId {
    ReplicaSetId::new("shop").unwrap()
}

fn name(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
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

fn says(tool: &str, hints: Annotations) -> SetOptions {
    let mut options = SetOptions::default();
    options.overrides.insert(name(tool), hints);
    options
}

fn two_tools() -> [Value; 2] {
    [
        json!({"name": "get_order", "annotations": {"readOnlyHint": true}}),
        json!({"name": "get_item", "annotations": {"readOnlyHint": true}}),
    ]
}

#[test]
fn new_options_apply_to_listed_tools_and_change_no_others() {
    let registry = Registry::new();
    list(&registry, "a", &two_tools());
    let (order, item) = (tool(&registry, "get_order"), tool(&registry, "get_item"));
    assert_eq!(order.plan().effect, Effect::ReadOnly);

    let hints = Annotations::default()
        .with_read_only(false)
        .with_destructive(true);
    let changes = registry.change_options(&set(), says("get_order", hints));
    assert_eq!(changes.changed, [name("get_order")]);
    assert!(changes.added.is_empty() && changes.removed.is_empty());
    let now = tool(&registry, "get_order");
    assert_eq!(now.plan().effect, Effect::Destructive);
    assert!(Arc::ptr_eq(&item, &tool(&registry, "get_item")));

    let changes = registry.change_options(&set(), SetOptions::default());
    assert_eq!(changes.changed, [name("get_order")]);
    assert_eq!(tool(&registry, "get_order").plan(), order.plan());
    let nothing = registry.change_options(&set(), SetOptions::default());
    assert!(nothing.is_empty(), "{nothing:?}");
}

#[test]
fn new_inference_rules_reread_the_list_and_keep_refusals() {
    let registry = Registry::new();
    let odd = json!({"readOnlyHint": true, "destructiveHint": true});
    let zap = json!({"name": "zap", "annotations": odd});
    let find = json!({"name": "get_or_create_order"});
    list(&registry, "a", &[zap, find]);
    let effect = || tool(&registry, "get_or_create_order").plan().effect;
    assert_ne!(effect(), Effect::ReadOnly);
    let refused = registry.catalogue().refused().to_vec();
    assert_eq!(refused.len(), 1);

    let mut options = SetOptions::default();
    options.rules = RuleSet::Neurolink;
    registry.change_options(&set(), options);
    assert_eq!(
        effect(),
        Effect::ReadOnly,
        "its keywords see the `get` only"
    );
    assert_eq!(registry.catalogue().refused(), refused);
    registry.change_options(&set(), SetOptions::default());
    assert_ne!(effect(), Effect::ReadOnly);
}

#[test]
fn a_removed_set_leaves_nothing() {
    let registry = Registry::new();
    registry.set_options(set(), SetOptions::default().with_prefix("shop"));
    list(&registry, "a", &two_tools());
    let generation = registry.catalogue().generation();

    let changes = registry.forget(&set());
    assert_eq!(changes.removed, [name("get_item"), name("get_order")]);
    let catalogue = registry.catalogue();
    assert!(catalogue.generation() > generation);
    assert!(catalogue.entries().is_empty() && catalogue.find("shop.get_order").is_none());
    assert_eq!(catalogue.offered_by(&ServerId::new("a").unwrap()), 0);
    assert!(
        registry.forget(&set()).is_empty(),
        "and not announced twice"
    );

    // a tool that comes back under the name starts afresh
    list(&registry, "a", &two_tools());
    let catalogue = registry.catalogue();
    assert_eq!(catalogue.entries()[0].client_name(), "get_order");
}

#[test]
fn a_server_ttl_does_not_apply_to_volatile_tools() {
    let clock = || json!({"name": "get_current_time", "annotations": {"readOnlyHint": true}});
    let ttl = Caching::For(Duration::from_secs(60));
    let mut options = SetOptions::default();
    options.caching = Some(ttl);
    let registry = Registry::new();
    registry.set_options(set(), options.clone());
    list(&registry, "a", &[clock()]);
    let kept = |registry: &Registry| tool(registry, "get_current_time").plan().result_ttl();
    assert_eq!(kept(&registry), None);
    options.tool_caching.insert(name("get_current_time"), ttl);
    registry.change_options(&set(), options);
    assert_eq!(kept(&registry), Some(Duration::from_secs(60)));
}
