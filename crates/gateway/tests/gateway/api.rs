//! What the API for operators refuses: nothing changes, and the answer says why.

use serde_json::{Value, json};

use crate::support::Gateway;

const JSON: &str = "application/json";

/// Each row: a path below `/api`, a body, the status and a part of the answer.
const REFUSED: &str = r#"
servers/ghost/drain |  | 404 | no server \"ghost\"
servers/ghost/undrain | {} | 404 | the servers are
servers/ghost/weight | {"weight": 1} | 404 | no server
servers/orders-primary/weight | {"weight": 101} | 400 | 101 is not a weight
servers/orders-primary/weight | {} | 400 | `weight`
servers/orders-primary/drain | {"now": true} | 400 | no body
cache/purge | {"tool":"orders__get_ordr"} | 404 | did you mean `orders__get_order`
cache/purge | {"tool":"x"} | 404 | no tool
cache/purge | {"server":"orders-primry"} | 404 | did you mean `orders-primary`
cache/purge | {"all":false} | 404 | only if it is `true`
cache/purge | {"all":true,"server":"orders-primary"} | 400 | exactly one of
cache/purge | {} | 400 | exactly one of
cache/purge | {"sever":"orders-primary"} | 400 | exactly one of
breakers | {"action":"open","server":"x"} | 404 | no server
breakers | {"action":"open","server":"orders-primary","tool":"add_not"} | 404 | you mean `add_note`
breakers | {"action":"open","server":"orders-replica","tool":"t","discovery":true} | 404 | both
breakers | {"action":"shut","server":"orders-primary"} | 400 | open, close or release
tools/orders__get_order/call |  | 400 | not a JSON object
tools/orders__get_order/call | [] | 400 | not a JSON object
tools/orders__get_order/call | { | 400 | not a JSON object
"#;

#[tokio::test]
async fn a_request_that_makes_no_sense_changes_nothing_and_says_why() {
    let gateway = Gateway::sample().await;
    let order = || gateway.call_order(1);
    order().await;
    for row in REFUSED.trim().lines() {
        let parts: Vec<_> = row.split(" | ").collect();
        let [path, body, status, said] = parts[..] else {
            panic!("not a row: {row}");
        };
        let (found, text) = gateway.post(&format!("/api/{path}"), JSON, body).await;
        assert_eq!(found.to_string(), status, "{row}: {text}");
        assert!(text.contains(said.trim()), "{row}: {text}");
    }
    let call = "/api/tools/orders__get_order/call";
    let (found, text) = gateway.post(call, JSON, "{}\n{\"jsonrpc\":\"2.0\"}").await;
    assert_eq!(found, 400, "{text}");
    let servers: Vec<Value> = gateway.json("/api/servers").await;
    assert_eq!(
        (&servers[0]["weight"], &servers[0]["state"]),
        (&json!(80), &json!("healthy"))
    );
    assert_eq!(order().await["cache"], "hit");
    let stats = gateway.stats("orders__orders_stats", "after").await;
    assert!(stats["executions"].as_u64() <= Some(1), "{stats}");
}

#[tokio::test]
async fn a_post_that_needs_no_preflight_does_nothing() {
    let gateway = Gateway::sample().await;
    for path in [
        "/api/tools/orders__get_order/call",
        "/api/tools/orders__get_order/explain",
        "/api/breakers",
        "/api/cache/purge",
        "/api/servers/orders-primary/drain",
        "/api/servers/orders-primary/undrain",
        "/api/servers/orders-primary/weight",
    ] {
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/json-evil",
            "text/plain; application/json",
            "",
        ] {
            let (status, _) = gateway.post(path, kind, r#"{"order_id": 1}"#).await;
            assert_eq!(status, 415, "{kind:?} {path}");
        }
    }
}

#[tokio::test]
async fn a_breaker_of_a_tool_is_held_by_either_name_of_the_tool() {
    let gateway = Gateway::sample().await;
    for tool in ["add_note", "orders__add_note"] {
        let body = json!({"action": "open", "server": "orders-primary", "tool": tool});
        let (status, said) = gateway.post("/api/breakers", JSON, &body.to_string()).await;
        assert_eq!(status, 200, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["breaker"]["tool"], "add_note");
        assert_eq!(said["breaker"]["state"], "forced_open");
    }
}
