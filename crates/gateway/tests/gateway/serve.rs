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
async fn operators_see_health_readiness_and_metrics() {
    let gateway = Gateway::sample().await;
    assert_eq!(gateway.get_url(&gateway.public("/healthz")).await.0, 200);
    let (status, body) = gateway.get("/readyz").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (200, &json!(true)));
    assert_eq!(body["servers"][0]["id"], "orders-primary");
    assert_eq!(body["servers"][1]["tools"], 9);
    let up =
        r#"callward_server_up{callward_server="orders-primary",callward_server_set="orders"} 1"#;
    gateway.measures(&[up]).await;
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
