//! What a result says of the cache and of its trail in `_meta`: if the client asks, or the operator
//! wants it.

use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::support::{CALLWARD, Gateway, Pipe, within};

const CACHE: &str = "io.callward/cache";
const TRAIL: &str = "io.callward/trail";

/// Checks what results say, by the status of the cache.
fn says(result: &Value, status: Option<&str>) {
    let meta = &result["_meta"];
    assert_eq!(meta[CACHE]["status"].as_str(), status, "{result}");
    assert_eq!(meta[TRAIL].is_object(), status.is_some(), "{result}");
    assert_eq!(
        meta[CACHE]["age_ms"].is_u64(),
        status == Some("hit"),
        "{result}"
    );
}

/// The calls of a client: tool, arguments, whether it asks, and what the result says.
fn calls() -> [(&'static str, Value, bool, Option<&'static str>); 5] {
    let order = json!({"order_id": 1});
    [
        ("get_order", order.clone(), true, Some("miss")),
        ("get_order", order.clone(), false, None),
        ("get_order", order, true, Some("hit")),
        (
            "add_note",
            json!({"order_id": 1, "text": "x"}),
            true,
            Some("invalidated"),
        ),
        // a failure of the tool itself is an answer too
        ("get_order", json!({"order_id": 99}), true, Some("miss")),
    ]
}

fn params(tool: &str, arguments: &Value, asks: bool) -> Value {
    let meta = if asks {
        json!({CACHE: true, TRAIL: true})
    } else {
        json!({})
    };
    json!({"name": tool, "arguments": arguments, "_meta": meta})
}

#[tokio::test]
async fn a_result_reports_if_its_client_asks_in_both_eras_and_over_pipes() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    for mode in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions },
    ] {
        let gateway = Gateway::sample().await;
        let client = gateway.connect(mode).await;
        for (tool, arguments, asks, status) in calls() {
            let params = params(&format!("orders__{tool}"), &arguments, asks);
            let params = serde_json::from_value(params).unwrap();
            let result = within(tool, client.call_tool(params)).await.unwrap();
            says(&serde_json::to_value(result).unwrap(), status);
        }
    }
    let mut pipe = Pipe::open(&["run", "--ttl", "5m", "--", CALLWARD, "sample"]).await;
    for (tool, arguments, asks, status) in calls() {
        let params = params(tool, &arguments, asks);
        let answer = pipe.request("tools/call", params).await;
        says(&answer["result"], status);
    }
    assert!(pipe.close().await);
}

#[tokio::test]
async fn the_operator_may_have_all_results_report() {
    let gateway = Gateway::configured(
        "trail = true\n[cache]\nreport = true\n\
         [servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n",
    )
    .await;
    let order = json!({"order_id": 1});
    let answer = gateway.mcp("orders__get_order", order).await;
    says(&answer["result"], Some("miss"));
}
