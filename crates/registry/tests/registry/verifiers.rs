//! Which tool to check with what another one did.

use callward_core::{ReplicaSetId, ServerId, ToolDefinition, ToolName, Verifier};
use callward_registry::{Registry, SetOptions};
use serde_json::json;

fn set(name: &str) -> ReplicaSetId {
    name.parse().unwrap()
}

fn tool(name: &str, read_only: bool) -> ToolDefinition {
    let hints = json!({"readOnlyHint": read_only, "destructiveHint": false});
    let raw = json!({"name": name, "annotations": hints});
    ToolDefinition::from_json(raw.to_string()).unwrap()
}

fn read(name: &str) -> ToolDefinition {
    tool(name, true)
}

fn write(name: &str) -> ToolDefinition {
    tool(name, false)
}

fn list(registry: &Registry, of: &str, tools: Vec<ToolDefinition>) {
    let server = ServerId::new(format!("{of}-1")).unwrap();
    registry.register(&set(of), &server, tools);
}

/// The name clients see of what to check this tool with.
fn verifier(registry: &Registry, tool: &str) -> Option<String> {
    let catalogue = registry.catalogue();
    let verifier = catalogue.find(tool).unwrap().tool().verifier().cloned();
    if let Some(verifier) = &verifier {
        let entry = catalogue.find(verifier.client_name()).unwrap();
        assert_eq!(entry.tool().name(), verifier.tool(), "it is there");
    }
    verifier.map(|verifier| verifier.client_name().to_owned())
}

fn paired(write: &str, read: &str) -> SetOptions {
    let mut options = SetOptions::default().with_prefix("shop");
    options
        .verify_with
        .insert(ToolName::new(write).unwrap(), ToolName::new(read).unwrap());
    options
}

#[test]
fn a_write_is_paired_with_a_read_under_its_client_name() {
    let registry = Registry::new();
    registry.set_options(set("shop"), SetOptions::default().with_prefix("shop"));
    list(
        &registry,
        "shop",
        vec![write("update_order"), read("get_order")],
    );
    list(
        &registry,
        "other",
        vec![read("get_refund"), write("update_order")],
    );
    assert_eq!(
        verifier(&registry, "shop.update_order").as_deref(),
        Some("shop__get_order")
    );
    assert_eq!(
        verifier(&registry, "shop.get_order"),
        None,
        "reads need none"
    );
    assert_eq!(
        verifier(&registry, "other.update_order"),
        None,
        "of its own set only"
    );
}

#[test]
fn pairs_follow_the_lists() {
    let registry = Registry::new();
    let lists = |reads: Vec<ToolDefinition>| {
        let tools = reads.into_iter().chain([write("update_order")]).collect();
        list(&registry, "shop", tools);
        verifier(&registry, "shop.update_order")
    };
    assert_eq!(lists(vec![]), None);
    assert_eq!(
        lists(vec![read("list_orders")]).as_deref(),
        Some("list_orders")
    );
    let both = lists(vec![read("list_orders"), read("get_order")]);
    assert_eq!(both.as_deref(), Some("get_order"));
    assert_eq!(
        lists(vec![write("get_order")]),
        None,
        "it does not only read any more"
    );
    assert_eq!(lists(vec![read("get_order")]).as_deref(), Some("get_order"));
    assert_eq!(lists(vec![]), None, "it is gone");
}

#[test]
fn removing_a_server_removes_its_pairs() {
    let registry = Registry::new();
    let [first, second] = ["a", "b"].map(|id| ServerId::new(id).unwrap());
    registry.register(&set("shop"), &first, vec![write("update_order")]);
    registry.register(&set("shop"), &second, vec![read("get_order")]);
    assert_eq!(
        verifier(&registry, "update_order").as_deref(),
        Some("get_order")
    );
    registry.remove(&set("shop"), &second);
    assert_eq!(verifier(&registry, "update_order"), None);
}

#[test]
fn a_configured_pair_beats_names() {
    let registry = Registry::new();
    registry.set_options(set("shop"), paired("pay", "list_payments"));
    let tools = || vec![write("pay"), read("list_payments"), read("get_pay")];
    list(&registry, "shop", tools());
    assert_eq!(
        verifier(&registry, "shop.pay").as_deref(),
        Some("shop__list_payments")
    );
    assert!(registry.catalogue().refused().is_empty());
}

#[test]
fn an_invalid_configured_pair_is_ignored() {
    for reader in [None, Some(write("audit"))] {
        let registry = Registry::new();
        registry.set_options(set("shop"), paired("update_order", "audit"));
        let absent = reader.is_none();
        let tools = [write("update_order"), read("get_order")];
        list(&registry, "shop", tools.into_iter().chain(reader).collect());
        let found = verifier(&registry, "shop.update_order");
        assert_eq!(found.as_deref(), Some("shop__get_order"));
        let refused: Vec<_> = registry
            .catalogue()
            .refused()
            .iter()
            .map(|r| r.tool.to_string())
            .collect();
        assert_eq!(refused, if absent { vec!["audit"] } else { vec![] });
    }
}

#[test]
fn a_tool_with_an_unchanged_pair_stays_the_same_instance() {
    let registry = Registry::new();
    let tools = || vec![write("update_order"), read("get_order")];
    list(&registry, "shop", tools());
    let instance = || {
        registry
            .catalogue()
            .find("update_order")
            .unwrap()
            .tool()
            .clone()
    };
    let before = instance();
    list(&registry, "shop", tools());
    list(&registry, "other", vec![read("x")]);
    assert!(std::sync::Arc::ptr_eq(&before, &instance()));
    assert_eq!(
        before.verifier(),
        Some(&Verifier::new("get_order".parse().unwrap(), "get_order"))
    );
}
