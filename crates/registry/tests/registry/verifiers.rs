//! Which tool to check with what another one did.

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
    assert!(!bed.tool(&verifier).plan().is_write());
    Some(verifier)
}

#[test]
fn a_write_is_paired_by_name_or_as_configured_with_a_read_of_its_set() {
    let update = "update_order";
    let (get, list) = (read("get_order"), read("list_payments"));
    let (audit, listed) = (write("audit"), Some("shop__list_payments"));
    for (configured, others, expected) in [
        (None, vec![&get], Some("shop__get_order")),
        // those of other sets do not count
        (None, vec![], None),
        (Some("list_payments"), vec![&list, &get], listed),
        // an invalid pair is ignored
        (Some("audit"), vec![&get, &audit], Some("shop__get_order")),
        (Some("absent"), vec![&get], Some("shop__get_order")),
    ] {
        let mut options = prefixed("shop");
        let pair = configured.map(|reader| (name(update), name(reader)));
        options.verify_with.extend(pair);
        let bed = Bed::with([("shop", options)]);
        bed.list("other", [get.clone(), list.clone()]);
        let update = write(update);
        bed.list("shop", [&update].into_iter().chain(others).cloned());
        let found = verifier(&bed, "shop.update_order");
        assert_eq!(found.as_deref(), expected, "{configured:?}");
        // reads need none
        let catalogue = bed.catalogue();
        let reader = catalogue.find("shop.get_order");
        assert!(reader.is_none_or(|entry| entry.tool().verifier.is_none()));
        let refusals = bed.refusals();
        assert_eq!(refusals.len(), usize::from(configured == Some("absent")));
        assert!(refusals.iter().all(|tool| tool.starts_with("absent: ")));
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
    bed.add("shop", "second", vec![definition(read("get_order"))]);
    let before = bed.tool("update_order");
    assert_eq!(before.verifier.as_deref(), Some("get_order"));
    // a tool with an unchanged pair stays the same instance
    bed.list("shop", [write("update_order")]);
    bed.list("other", [read("x")]);
    assert!(std::sync::Arc::ptr_eq(&before, &bed.tool("update_order")));
    bed.remove(&set("shop"), &server("second"));
    assert_eq!(verifier(&bed, "update_order"), None);
}

#[test]
fn the_names_of_a_set_and_its_servers_and_a_prefix_are_no_thing_to_check() {
    for (tools, expected) in [
        (["my__create_user", "my__search"], None),
        (["my__update_order", "my__get_order"], Some("my__get_order")),
        (["hub_create_issue", "search_hub"], None),
        (["eu_create_issue", "search_eu"], None),
        (["us_create_issue", "search_us"], Some("search_us")),
    ] {
        let bed = Bed::default();
        let listed = [write(tools[0]), read(tools[1])].map(definition);
        bed.add("hub", "hub-eu", listed.into());
        assert_eq!(verifier(&bed, tools[0]).as_deref(), expected, "{tools:?}");
    }
}
