//! What the cache reports itself, and emptying it.

use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::scripted;
use crate::support::{CALLWARD, Client, Gateway, Pipe, http, within};

const KEY: &str = "io.callward/cache";

fn status(result: &Value) -> Option<&str> {
    result["_meta"][KEY]["status"].as_str()
}

/// Calls as a client that asks, or does not.
async fn asking(client: &Client, tool: &str, arguments: Value, asks: bool) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments});
    if asks {
        params["_meta"] = json!({KEY: true});
    }
    let params = serde_json::from_value(params).unwrap();
    let result = within(tool, client.call_tool(params)).await.unwrap();
    serde_json::to_value(result).unwrap()
}

async fn is_told(gateway: &Gateway, mode: ClientLifecycleMode, id: u64) {
    let client = gateway.connect(mode).await;
    let get = async |asks| {
        let order = json!({"order_id": id});
        asking(&client, "orders__get_order", order, asks).await
    };
    let first = get(true).await;
    assert_eq!(first["_meta"][KEY], json!({"status": "miss"}), "{first}");
    let silent = get(false).await;
    assert!(silent["_meta"].get(KEY).is_none(), "{silent}");
    let again = get(true).await;
    assert_eq!(status(&again), Some("hit"), "{again}");
    assert!(again["_meta"][KEY]["age_ms"].is_u64(), "{again}");
    assert_eq!(again["structuredContent"], first["structuredContent"]);
    let note = json!({"order_id": id, "text": "x"});
    let wrote = asking(&client, "orders__add_note", note, true).await;
    assert_eq!(status(&wrote), Some("invalidated"), "{wrote}");
    // a failure of the tool itself is an answer too
    let missing = json!({"order_id": 99});
    let missing = asking(&client, "orders__get_order", missing, true).await;
    assert_eq!(missing["isError"], true, "{missing}");
    assert_eq!(status(&missing), Some("miss"), "{missing}");
}

#[tokio::test]
async fn who_asks_is_told_what_the_cache_did_in_both_eras() {
    let gateway = Gateway::sample().await;
    is_told(&gateway, ClientLifecycleMode::Initialize, 1).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let modern = ClientLifecycleMode::Discover { preferred_versions };
    is_told(&gateway, modern, 2).await;
}

#[tokio::test]
async fn who_asks_over_pipes_is_told_too() {
    let mut pipe = Pipe::open(&["run", "--ttl", "5m", "--", CALLWARD, "sample"]).await;
    let params = json!({"name": "get_order", "arguments": {"order_id": 1}, "_meta": {KEY: true}});
    let first = pipe.request("tools/call", params.clone()).await;
    assert_eq!(status(&first["result"]), Some("miss"), "{first}");
    let again = pipe.request("tools/call", params).await;
    assert_eq!(status(&again["result"]), Some("hit"), "{again}");
    let silent = pipe.call("get_order", json!({"order_id": 1})).await;
    assert!(silent["result"].get("_meta").is_none(), "{silent}");
    assert!(pipe.close().await);
}

#[tokio::test]
async fn the_operator_may_have_all_be_told() {
    let tools = json!([
        {"name": "get_current_time", "description": "Get current time in a timezone",
         "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
    ]);
    let server = scripted::server("world", &tools);
    let gateway = Gateway::fixed(&format!("[cache]\nreport = true\n{server}")).await;
    let answer = gateway.mcp("world__get_current_time", json!({})).await;
    assert_eq!(
        answer["result"]["_meta"][KEY],
        json!({"status": "bypass", "reason": "plan"}),
        "{answer}"
    );
}

const SHOPS: &str = r#"
[servers.shop]
command = "CALLWARD"
args = ["sample"]
[servers.shop.tools.get_order]
tags = ["orders"]
[servers.shop.tools.sales_report]
reads = ["sales"]
[servers.depot]
command = "CALLWARD"
args = ["sample"]
"#;

/// Makes the reads, and says of which the answer was kept.
async fn kept(gateway: &Gateway) -> [bool; 4] {
    let mut kept = [false; 4];
    let reads = [
        ("shop__get_order", json!({"order_id": 1})),
        ("shop__list_orders", json!({})),
        ("shop__sales_report", json!({"region": "n", "delay_ms": 0})),
        ("depot__get_order", json!({"order_id": 1})),
    ];
    for (kept, (tool, arguments)) in kept.iter_mut().zip(reads) {
        let view = gateway.call(tool, arguments).await;
        assert!(view["result"].is_object(), "{view}");
        *kept = view["cache"] == "hit";
    }
    kept
}

async fn post(gateway: &Gateway, kind: &str, body: &str) -> (u16, String) {
    let request = http()
        .post(gateway.at("/api/cache/purge"))
        .header("content-type", kind)
        .body(body.to_owned());
    let answer = within(body, request.send()).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn each_purge_forgets_what_it_names_and_nothing_else() {
    let gateway = Gateway::fixed(SHOPS).await;
    kept(&gateway).await;
    assert_eq!(kept(&gateway).await, [true; 4]);
    for (what, still) in [
        (r#"{"tool":"shop__get_order"}"#, [false, true, true, true]),
        (r#"{"tool":"shop.list_orders"}"#, [true, false, true, true]),
        (r#"{"server":"shop"}"#, [false, false, false, true]),
        (r#"{"tag":"orders"}"#, [false, true, true, true]),
        (r#"{"tag":"sales"}"#, [true, true, false, true]),
        (r#"{"tag":"unheard of"}"#, [true; 4]),
        (r#"{"principal":"another"}"#, [true; 4]),
        (r#"{"principal":"anonymous"}"#, [false; 4]),
        (r#"{"all":true}"#, [false; 4]),
    ] {
        let (status, said) = post(&gateway, "application/json; charset=utf-8", what).await;
        assert_eq!(status, 200, "{what}: {said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["purged"].to_string(), what);
        let mut found = kept(&gateway).await;
        if what.contains("tag") && still[2] {
            // the scope that the report reads may share its place with one of this name
            found[2] = true;
        }
        assert_eq!(found, still, "{what}");
    }
}

#[tokio::test]
async fn what_cannot_be_meant_purges_nothing() {
    let gateway = Gateway::fixed(SHOPS).await;
    kept(&gateway).await;
    let json = "application/json";
    for (kind, body, status, said) in [
        (
            json,
            r#"{"tool":"shop__get_ordr"}"#,
            404,
            "did you mean `shop__get_order`",
        ),
        (json, r#"{"tool":"x"}"#, 404, "no tool"),
        (json, r#"{"server":"shpo"}"#, 404, "did you mean `shop`"),
        (json, r#"{"all":false}"#, 404, "only if it is `true`"),
        (
            json,
            r#"{"all":true,"server":"shop"}"#,
            400,
            "exactly one of",
        ),
        (json, "{}", 400, "exactly one of"),
        (json, r#"{"sever":"shop"}"#, 400, "exactly one of"),
        ("text/plain", r#"{"all":true}"#, 415, "application/json"),
    ] {
        let (found, text) = post(&gateway, kind, body).await;
        assert_eq!(found, status, "{body}: {text}");
        assert!(text.contains(said), "{body}: {text}");
    }
    let web_page = http()
        .post(gateway.at("/api/cache/purge"))
        .header("content-type", json)
        .header("origin", "http://localhost:3000")
        .body(r#"{"all":true}"#);
    let answer = within("a page", web_page.send()).await.unwrap();
    assert_eq!(answer.status(), 403);
    assert_eq!(kept(&gateway).await, [true; 4]);
}

#[tokio::test]
async fn what_the_cache_counts_is_measured() {
    let gateway = Gateway::sample().await;
    for _ in 0..3 {
        gateway
            .call("orders__get_order", json!({"order_id": 1}))
            .await;
    }
    gateway
        .call("orders__get_order", json!({"order_id": 99}))
        .await;
    let note = json!({"order_id": 1, "text": "x"});
    gateway.call("orders__add_note", note).await;
    let (_, metrics) = gateway.get("/metrics").await;
    for line in [
        r#"callward_cache_lookups_total{callward_result="hit",callward_server_set="orders",gen_ai_tool_name="get_order"} 2"#,
        r#"callward_cache_lookups_total{callward_result="miss",callward_server_set="orders",gen_ai_tool_name="get_order"} 2"#,
        r#"callward_cache_refusals_total{callward_reason="tool_error",callward_server_set="orders",gen_ai_tool_name="get_order"} 1"#,
        r#"callward_cache_stored_total{callward_server_set="orders",gen_ai_tool_name="get_order"} 1"#,
        r#"callward_cache_invalidations_total{callward_server_set="orders",gen_ai_tool_name="add_note"} 1"#,
        r#"callward_cache_evictions_total{callward_reason="size"} 0"#,
        "callward_cache_entries 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in\n{metrics}"
        );
    }
    let saved = r#"callward_cache_saved_seconds_total{callward_server_set="orders",gen_ai_tool_name="get_order"} "#;
    let saved = metrics.lines().find_map(|line| line.strip_prefix(saved));
    assert!(saved.unwrap().parse::<f64>().unwrap() > 0.0, "{metrics}");
}
