//! Servers and options that come and go while the catalogue is in use.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Annotations, Caching, Effect};
use callward_registry::SetOptions;
use serde_json::{Value, json};

use crate::bed::{Bed, client_names, name, overriding, prefixed, server, set};

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
