//! `callward serve`: the endpoint, and what operators ask.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::Gateway;

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
