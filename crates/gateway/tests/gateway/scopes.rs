//! Which state tools read and write, as an operator says it: what a write drops, and what stays.

use serde_json::{Value, json};

use crate::scripted;
use crate::support::Gateway;

/// The page whose examples are run here.
const PAGE: &str = include_str!("../../../../docs/cache.md");

fn read(name: &str) -> Value {
    json!({"name": name, "description": "Returns it.", "inputSchema": {"type": "object"},
           "annotations": {"readOnlyHint": true}})
}

fn write(name: &str) -> Value {
    json!({"name": name, "description": "Changes it.", "inputSchema": {"type": "object"},
           "annotations": {"readOnlyHint": false}})
}

/// Returns an example of the page, with servers in the places of its addresses.
fn example(index: usize) -> String {
    let block = PAGE
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .nth(index)
        .unwrap();
    let shop = json!([
        read("get_order"),
        read("list_orders"),
        write("cancel_order"),
        write("import")
    ]);
    let billing = json!([read("get_balance"), read("get_address")]);
    let command = |tools: &Value| {
        let lines = scripted::server("x", tools);
        lines.split_once('\n').unwrap().1.trim_end().to_owned()
    };
    block
        .replace("url = \"http://127.0.0.1:9001/mcp\"", &command(&shop))
        .replace("url = \"http://127.0.0.1:9002/mcp\"", &command(&billing))
}

/// Calls all reads of the example, and says what the cache did with each.
async fn reads(gateway: &Gateway) -> [String; 5] {
    let mut all = Vec::new();
    for (tool, arguments) in [
        ("shop__get_order", json!({"order_id": 7})),
        ("shop__get_order", json!({"order_id": 8})),
        ("shop__list_orders", json!({})),
        ("billing__get_balance", json!({})),
        ("billing__get_address", json!({})),
    ] {
        let view = gateway.call(tool, arguments).await;
        all.push(view["cache"].as_str().unwrap().to_owned());
    }
    all.try_into().unwrap()
}

#[tokio::test]
async fn a_write_drops_what_it_names_and_what_nobody_named() {
    let gateway = Gateway::fixed(&example(0)).await;
    assert_eq!(reads(&gateway).await, ["miss"; 5]);
    assert_eq!(reads(&gateway).await, ["hit"; 5]);
    // the value is the same in every notation
    let cancelled = gateway
        .call("shop__cancel_order", json!({"order_id": "7"}))
        .await;
    assert_eq!(cancelled["cache"], "invalidated");
    assert_eq!(
        reads(&gateway).await,
        ["miss", "hit", "miss", "miss", "hit"]
    );
    // no config states what this one writes
    gateway.call("shop__import", json!({})).await;
    assert_eq!(
        reads(&gateway).await,
        ["miss", "miss", "miss", "hit", "hit"]
    );
    // without the argument it may be any order
    gateway.call("shop__cancel_order", json!({})).await;
    assert_eq!(
        reads(&gateway).await,
        ["miss", "miss", "miss", "miss", "hit"]
    );
}

#[tokio::test]
async fn a_rule_that_leaves_something_out_leaves_old_answers() {
    let page = example(0);
    let rule = "writes = [\"order:{order_id}\", \"@billing/balance\"]";
    assert!(page.contains(rule), "{page}");
    let gateway = Gateway::fixed(&page.replace(rule, "writes = [\"order:{order_id}\"]")).await;
    reads(&gateway).await;
    gateway
        .call("shop__cancel_order", json!({"order_id": 7}))
        .await;
    // nothing checks a rule: the balance is the old one
    assert_eq!(reads(&gateway).await, ["miss", "hit", "miss", "hit", "hit"]);
}
