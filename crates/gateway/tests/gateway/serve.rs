//! `callward serve`: the endpoint, and what operators ask.

use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::support::{Gateway, call, structured, within};

async fn lists_and_calls(gateway: &Gateway, mode: ClientLifecycleMode) {
    let client = gateway.connect(mode).await;
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    assert_eq!(tools.len(), 9);
    assert!(tools.iter().all(|tool| tool.name.starts_with("orders__")));
    let order = call(&client, "orders__get_order", json!({"order_id": 2})).await;
    assert_eq!(structured(&order)["item"], "chair");
    let missing = call(&client, "orders__get_order", json!({"order_id": 99})).await;
    assert_eq!(missing.is_error, Some(true));
}

#[tokio::test]
async fn a_legacy_client_and_a_modern_one_share_the_endpoint() {
    let gateway = Gateway::sample().await;
    lists_and_calls(&gateway, ClientLifecycleMode::Initialize).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    lists_and_calls(
        &gateway,
        ClientLifecycleMode::Discover { preferred_versions },
    )
    .await;
}

#[tokio::test]
async fn different_slow_reads_run_at_the_same_time() {
    let gateway = Gateway::sample().await;
    let one = |n: usize| {
        gateway.mcp(
            "orders__sales_report",
            json!({"region": format!("r{n}"), "delay_ms": 5_000}),
        )
    };
    let answers = join_all((0..64).map(one)).await;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(
            answer["result"]["structuredContent"]["region"],
            format!("r{n}"),
            "{answer}"
        );
    }
    let stats = gateway.stats("orders__orders_stats", "after").await;
    assert_eq!(stats["tools"]["sales_report"]["executions"], 64, "{stats}");
    assert_eq!(stats["tools"]["sales_report"]["peak"], 64, "{stats}");
}

#[tokio::test]
async fn operators_see_health_readiness_and_counters() {
    let gateway = Gateway::sample().await;
    for _ in 0..2 {
        gateway
            .mcp("orders__get_order", json!({"order_id": 1}))
            .await;
    }
    assert_eq!(gateway.get_url(&gateway.public("/healthz")).await.0, 200);
    let (status, body) = gateway.get("/readyz").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (200, &json!(true)));
    assert_eq!(body["servers"][0]["id"], "orders-primary");
    assert_eq!(body["servers"][1]["tools"], 9);
    let (status, metrics) = gateway.get("/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "callward_cache_lookups_total{callward_result=\"hit\",callward_server_set=\"orders\",gen_ai_tool_name=\"get_order\"} 1",
        "callward_cache_lookups_total{callward_result=\"miss\",callward_server_set=\"orders\",gen_ai_tool_name=\"get_order\"} 1",
        "callward_cache_lookups_total{callward_result=\"joined\",callward_server_set=\"orders\",gen_ai_tool_name=\"get_order\"} 0",
        "callward_cache_stored_total{callward_server_set=\"orders\",gen_ai_tool_name=\"get_order\"} 1",
        "callward_server_up{callward_server=\"orders-primary\",callward_server_set=\"orders\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in\n{metrics}"
        );
    }
    assert!(metrics.contains("callward_cache_size_bytes "), "{metrics}");
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let gateway = Gateway::sample().await;
    let read = || gateway.mcp_request("orders__get_order", &json!({"order_id": 1}));
    for (name, value, status) in [
        ("origin", "http://evil.example", 403),
        ("host", "evil.example", 403),
        ("origin", "http://localhost:3000", 200),
    ] {
        let answer = within(value, read().header(name, value).send())
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{name}: {value}");
    }
    // a probe may come by any address; what the servers said is not for it
    let ready = gateway.public("/readyz");
    let ready = crate::support::http()
        .get(ready)
        .header("host", "evil.example");
    let ready = within("the probe", ready.send()).await.unwrap();
    assert_eq!(ready.status(), 200);
    let body: Value = serde_json::from_str(&ready.text().await.unwrap()).unwrap();
    assert_eq!(body["ready"], true);
    assert!(body.get("servers").is_none(), "{body}");
}

#[tokio::test]
async fn what_is_no_object_never_reaches_a_server() {
    let gateway = Gateway::sample().await;
    let url = gateway.at("/api/tools/orders__get_order/call");
    for body in ["", "[]", "{", "{}\n{\"jsonrpc\":\"2.0\"}"] {
        let answer = crate::support::http()
            .post(&url)
            .header("content-type", "application/json")
            .body(body)
            .send();
        assert_eq!(
            within(body, answer).await.unwrap().status(),
            400,
            "{body:?}"
        );
    }
    let stats = gateway.stats("orders__orders_stats", "after").await;
    assert_eq!(stats["executions"], 0, "{stats}");
}

#[tokio::test]
async fn a_missing_server_makes_the_gateway_unready_and_hides_no_other() {
    let alone = Gateway::configured("[servers.gone]\ncommand = \"/nonexistent/server\"\n").await;
    let (status, body) = alone.get("/readyz").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (503, &json!(false)));
    assert!(body["servers"][0]["error"].is_string(), "{body}");
    assert_eq!(alone.get_url(&alone.public("/healthz")).await.0, 200);

    let both = Gateway::configured(
        "[servers.gone]\ncommand = \"/nonexistent/server\"\n\
         [servers.here]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n",
    )
    .await;
    assert_eq!(both.get("/readyz").await.0, 200);
    let answer = both.call("here__get_order", json!({"order_id": 1})).await;
    assert_eq!(
        answer["result"]["structuredContent"]["status"], "paid",
        "{answer}"
    );
}

#[tokio::test]
async fn what_an_operator_says_about_a_tool_wins() {
    let gateway = Gateway::configured(
        "[servers.shop]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n\
         [servers.shop.tools.add_note]\nrequiresConfirmation = true\n",
    )
    .await;
    let (_, tools) = gateway.get("/api/tools").await;
    let tools: Vec<Value> = serde_json::from_str(&tools).unwrap();
    let note = tools
        .iter()
        .find(|tool| tool["name"] == "shop__add_note")
        .unwrap();
    assert_eq!(note["confirm"], true, "{note}");
    assert_eq!(
        note["sources"]["requiresConfirmation"], "operator",
        "{note}"
    );
}
