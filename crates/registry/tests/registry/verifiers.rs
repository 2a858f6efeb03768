//! Which tool to check with what another one did.

use callward_registry::SetOptions;
use serde_json::{Value, json};

use crate::bed::{Bed, definition, name, prefixed, server, set};

fn tool(name: &str, read_only: bool) -> Value {
    let hints = json!({"readOnlyHint": read_only, "destructiveHint": false});
    json!({"name": name, "annotations": hints})
}

fn read(name: &str) -> Value {
    tool(name, true)
}

fn write(name: &str) -> Value {
    tool(name, false)
}

/// The name clients see of what to check this tool with.
fn verifier(bed: &Bed, tool: &str) -> Option<String> {
    let verifier = bed.tool(tool).verifier.as_deref()?.to_owned();
    assert!(
        !bed.tool(&verifier).plan().is_write(),
        "it is there and reads"
    );
    Some(verifier)
}

fn paired(write: &str, read: &str) -> SetOptions {
    let mut options = prefixed("shop");
    options.verify_with.insert(name(write), name(read));
    options
}

#[test]
fn a_write_is_paired_with_a_read_under_its_client_name() {
    let bed = Bed::with([("shop", prefixed("shop"))]);
    bed.list("shop", [write("update_order"), read("get_order")]);
    bed.list("other", [read("get_refund"), write("update_order")]);
    for (tool, expected) in [
        ("shop.update_order", Some("shop__get_order")),
        // reads need none
        ("shop.get_order", None),
        // of its own set only
        ("other.update_order", None),
    ] {
        assert_eq!(verifier(&bed, tool).as_deref(), expected, "{tool}");
    }
}

#[test]
fn pairs_follow_the_lists() {
    let bed = Bed::default();
    let steps: [(&[Value], Option<&str>); 6] = [
        (&[], None),
        (&[read("list_orders")], Some("list_orders")),
        (&[read("list_orders"), read("get_order")], Some("get_order")),
        // it does not only read any more
        (&[write("get_order")], None),
        (&[read("get_order")], Some("get_order")),
        // it is gone
        (&[], None),
    ];
    for (tools, expected) in steps {
        bed.list("shop", [tools, &[write("update_order")]].concat());
        let found = verifier(&bed, "shop.update_order");
        assert_eq!(found.as_deref(), expected, "{tools:?}");
    }
}

#[test]
fn removing_a_server_removes_its_pairs() {
    let bed = Bed::default();
    bed.list("shop", [write("update_order")]);
    let second = server("second");
    bed.register(&set("shop"), &second, vec![definition(read("get_order"))]);
    let found = verifier(&bed, "update_order");
    assert_eq!(found.as_deref(), Some("get_order"));
    bed.remove(&set("shop"), &second);
    assert_eq!(verifier(&bed, "update_order"), None);
}

#[test]
fn a_configured_pair_beats_names() {
    let bed = Bed::with([("shop", paired("pay", "list_payments"))]);
    bed.list(
        "shop",
        [write("pay"), read("list_payments"), read("get_pay")],
    );
    let found = verifier(&bed, "shop.pay");
    assert_eq!(found.as_deref(), Some("shop__list_payments"));
    assert!(bed.catalogue().refused().is_empty());
}

#[test]
fn an_invalid_configured_pair_is_ignored() {
    for (reader, refused) in [(None, 1), (Some(write("audit")), 0)] {
        let bed = Bed::with([("shop", paired("update_order", "audit"))]);
        let tools = [write("update_order"), read("get_order")];
        bed.list("shop", tools.into_iter().chain(reader));
        let found = verifier(&bed, "shop.update_order");
        assert_eq!(found.as_deref(), Some("shop__get_order"));
        let refusals = bed.refusals();
        assert_eq!(refusals.len(), refused);
        assert!(refusals.iter().all(|tool| tool.starts_with("audit: ")));
    }
}

#[test]
fn a_tool_with_an_unchanged_pair_stays_the_same_instance() {
    let bed = Bed::default();
    let tools = || [write("update_order"), read("get_order")];
    bed.list("shop", tools());
    let before = bed.tool("update_order");
    bed.list("shop", tools());
    bed.list("other", [read("x")]);
    assert!(std::sync::Arc::ptr_eq(&before, &bed.tool("update_order")));
    assert_eq!(before.verifier.as_deref(), Some("get_order"));
}
