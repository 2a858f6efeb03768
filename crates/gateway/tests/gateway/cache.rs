//! What the cache counts. Purging it is in `tests/golden/running/purge.md`.

use serde_json::json;

use crate::support::Gateway;

#[tokio::test]
async fn what_the_cache_counts_is_measured() {
    let gateway = Gateway::sample().await;
    for _ in 0..3 {
        gateway.call_order(1).await;
    }
    gateway.call_order(99).await;
    let note = json!({"order_id": 1, "text": "x"});
    gateway.call("orders__add_note", note).await;
    gateway.measures(&[
        r#"callward_cache_lookups_total{callward_result="hit",callward_server_set="orders",gen_ai_tool_name="get_order"} 2"#,
        r#"callward_cache_lookups_total{callward_result="miss",callward_server_set="orders",gen_ai_tool_name="get_order"} 2"#,
        r#"callward_cache_lookups_total{callward_result="joined",callward_server_set="orders",gen_ai_tool_name="get_order"} 0"#,
        r#"callward_cache_refusals_total{callward_reason="tool_error",callward_server_set="orders",gen_ai_tool_name="get_order"} 1"#,
        r#"callward_cache_stored_total{callward_server_set="orders",gen_ai_tool_name="get_order"} 1"#,
        r#"callward_cache_invalidations_total{callward_server_set="orders",gen_ai_tool_name="add_note"} 1"#,
        r#"callward_cache_evictions_total{callward_reason="size"} 0"#,
        "callward_cache_entries 1",
    ]).await;
    let (_, metrics) = gateway.get("/metrics").await;
    let saved = r#"callward_cache_saved_seconds_total{callward_server_set="orders",gen_ai_tool_name="get_order"} "#;
    let saved = metrics.lines().find_map(|line| line.strip_prefix(saved));
    assert!(saved.unwrap().parse::<f64>().unwrap() > 0.0, "{metrics}");
}
