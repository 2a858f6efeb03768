//! Rules over arguments on the way of a call. `tests/golden` has how they are explained.

use serde_json::{Value, json};

use crate::support::Gateway;

/// The sample, of which the operator says that `add_note` destroys. What the rules say is made up:
/// any tool would do.
const CONFIG: &str = r#"
[servers.shop]
command = "CALLWARD"
args = ["sample"]

[servers.shop.tools.add_note]
destructiveHint = true
[[servers.shop.tools.add_note.rules]]
when = { text = "open" }
readOnlyHint = true
[[servers.shop.tools.add_note.rules]]
when = { text = { matches = "on_hold|pack(ed|ing)" }, order_id = { one_of = [1, 2] } }
destructiveHint = false
idempotentHint = true
"#;

#[tokio::test]
async fn a_call_obeys_the_rule_that_matches_it() {
    let gateway = Gateway::fixed(CONFIG).await;
    let call = async |note: &str| {
        let arguments = json!({"order_id": 1, "text": note});
        let view = gateway.call("shop__add_note", arguments).await;
        (
            view["effect"].as_str().unwrap().to_owned(),
            view["cache"].as_str().unwrap().to_owned(),
        )
    };
    let seen = |effect: &str, cache: &str| (effect.to_owned(), cache.to_owned());
    assert_eq!(call("open").await, seen("read_only", "miss"));
    assert_eq!(call("open").await, seen("read_only", "hit"));
    assert_eq!(call("packed").await, seen("idempotent", "invalidated"));
    assert_eq!(call("open").await, seen("read_only", "miss"));
    assert_eq!(call("closed").await, seen("destructive", "invalidated"));
    assert_eq!(call("open").await, seen("read_only", "miss"));
    // what the list of tools says is the tool's own plan, and that there is more to it
    let tools: Vec<Value> = gateway.json("/api/tools").await;
    let tool = tools
        .iter()
        .find(|tool| tool["name"] == "shop__add_note")
        .unwrap();
    assert_eq!(tool["effect"], "destructive");
    assert_eq!(tool["argument_rules"], 2);
}
