//! `[listing]`: clients find tools, and call them by one tool.

use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::approvals::{DELETE, approvals, config, deleted, id, order, pending};
use crate::asked_of::{Careful, connected};
use crate::support::{Gateway, Legacy, answer_of, call, result, said, sample};

const SEARCH: &str = "[listing]\nmode = \"search\"\n";
const HIDDEN: &str = "[[authorize]]\ntool = [\"orders.list_orders\"]\nthen = \"deny\"\n";

fn modes() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions },
    ]
}

fn via(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// The names of the tools that an answer of `find_tool` has.
fn names(found: &Value) -> Vec<&str> {
    let tools = found["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tools_are_found_and_called_by_their_own_plans() {
    let rest = format!("{SEARCH}{HIDDEN}{}", config(""));
    let gateway = Gateway::fixed(&rest).await;
    for mode in modes() {
        let client = gateway.connect(mode).await;
        let mut listed: Vec<_> = client.list_all_tools().await.unwrap();
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        let [calls, finds] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_eq!([&*calls.name, &*finds.name], ["call_tool", "find_tool"]);
        let hints = calls.annotations.as_ref().unwrap();
        assert_eq!(hints.read_only_hint, Some(false));
        assert_eq!(hints.open_world_hint, Some(true));

        let asked = json!({"query": "get order", "limit": 1, "plans": true});
        let found = call(&client, "find_tool", asked).await;
        let found = found.structured_content.unwrap();
        assert_eq!(names(&found), ["orders__get_order"]);
        assert_eq!(found["tools"][0]["plan"]["effect"], "read_only", "{found}");
        assert_eq!(found["nextOffset"], 1);
        let all = call(&client, "find_tool", json!({"limit": 20})).await;
        let all = all.structured_content.unwrap();
        assert!(!names(&all).contains(&"orders__list_orders"), "{all}");
        assert!(!names(&all).contains(&"find_tool"), "{all}");

        // one entry of the cache for both ways and all clients
        call(&client, "orders__get_order", order(1)).await;
        let read = via("orders__get_order", &order(1));
        let read = call(&client, "call_tool", read).await;
        assert_ne!(read.is_error, Some(true), "{read:?}");
        let stats = gateway.stats("orders").await;
        assert_eq!(stats["tools"]["get_order"]["executions"], 1, "{stats}");
        client.cancel().await.unwrap();
    }

    // what is not there or hidden is refused as by its own name
    for name in ["orders__list_orders", "orders__nothing"] {
        let own = gateway.mcp(name, json!({})).await;
        let why = format!("no tool {name:?}; `find_tool` finds all that you may call");
        assert_eq!(own["error"]["message"], why.as_str());
        let other = gateway.mcp("call_tool", via(name, &json!({}))).await;
        assert_eq!(own, other);
    }
    for (arguments, part) in [
        (via("call_tool", &json!({})), "is a built-in tool"),
        (via("find_tool", &json!({})), "is a built-in tool"),
        (via(DELETE, &json!([1])), "`arguments` is not an object"),
        (json!({}), "missing field `name`"),
        (
            json!({"name": DELETE, "order_id": 1}),
            "do not fit: unknown field `order_id`, expected `name` or `arguments`",
        ),
    ] {
        let answer = gateway.mcp("call_tool", arguments).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(said(&answer).contains(part), "{answer}");
    }

    let waits = gateway.begin("call_tool", &via(DELETE, &order(1)));
    let request = pending(&gateway, 1).await.remove(0);
    assert_eq!(request["tool"], "delete_order", "{request}");
    let (done, printed) = approvals(&gateway, &["approve", id(&request)]).await;
    assert!(done, "{printed}");
    let answer = answer_of(&waits.await.unwrap().1);
    assert_ne!(result(&answer)["isError"], true, "{answer}");
    assert_eq!(deleted(&gateway).await, 1);
}

#[tokio::test]
async fn a_called_tool_asks_its_client_in_both_eras() {
    let asks = "by = \"client\"\n";
    let gateway = Gateway::configured(&format!("{SEARCH}{}", config(asks))).await;
    for (runs, mode) in (1..).zip(modes()) {
        // the modern client calls again, with the state of the first round
        let client = connected(&gateway, Careful, mode).await;
        let called = via(DELETE, &order(runs * 2 - 1));
        let called = called.as_object().cloned().unwrap();
        let called = rmcp::model::CallToolRequestParams::new("call_tool").with_arguments(called);
        let answer = client.call_tool(called).await.unwrap();
        assert_ne!(answer.is_error, Some(true), "{answer:?}");
        assert_eq!(deleted(&gateway).await, u64::from(runs));
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn a_search_is_within_the_toolset() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("toolsets.json");
    let toolsets = format!("[toolsets]\nenabled = true\npath = {path:?}\n");
    let gateway = Gateway::configured(&format!("{SEARCH}{toolsets}{}", sample("orders"))).await;
    let agent = Legacy::open(&gateway.url).await;
    let tools = json!([{"namespacedName": "orders.get_order"}]);
    let built = json!({"name": "work", "tools": tools, "autoEquip": true});
    agent.call("build-toolset", built).await;
    let found = agent.call("find_tool", json!({})).await;
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(names(&found), ["orders__get_order"]);
    let outside = via("orders__list_orders", &json!({}));
    let outside = agent.call("call_tool", outside).await;
    assert!(outside.contains("toolset `work` has no such"), "{outside}");
    let inside = agent.call("call_tool", via("orders__get_order", &order(1)));
    let inside = inside.await;
    assert!(!inside.starts_with("no tool"), "{inside}");
}
