//! What operators see of limits: JSON and metrics. The table is in
//! `tests/golden/running/limits.md`.

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::{Gateway, call, until};

const CONFIG: &str = "\
[servers.shop]
command = \"CALLWARD\"
args = [\"sample\"]
max_concurrent = 3

[servers.shop.tools.add_note]
rateLimitHint = 1
";

async fn limits(gateway: &Gateway) -> Value {
    gateway.json("/api/limits").await
}

#[tokio::test]
async fn what_limits_hold_back_and_refuse_is_shown_and_measured() {
    let gateway = Gateway::configured(CONFIG).await;
    let note = json!({"order_id": 1, "text": "x"});
    let passed = gateway.call("shop__add_note", note.clone()).await;
    assert!(passed["result"].is_object(), "{passed}");
    // one call a minute, and no caller waits that long
    let refused = gateway.call("shop__add_note", note).await;
    assert_eq!(refused["error"]["kind"], "rate_limited", "{refused}");
    assert!(
        refused["error"]["retry_after_ms"].as_u64() > Some(30_000),
        "{refused}"
    );
    // the same failing call of one session, and once more than it takes
    let client = gateway.connect(ClientLifecycleMode::Initialize).await;
    for _ in 0..6 {
        let paid = json!({"order_id": 999_999, "status": "paid"});
        let missing = call(&client, "shop__set_status", paid).await;
        assert_eq!(missing.is_error, Some(true), "{missing:?}");
    }
    // a call that holds its place until the gateway ends
    let slow = gateway.mcp_request(
        "shop__sales_report",
        &json!({"region": "north", "delay_ms": 60_000}),
    );
    let slow = tokio::spawn(slow.send());
    let now = until("the call in flight", || async {
        let now = limits(&gateway).await;
        (now["places"][0]["in_flight"] == 1).then_some(now)
    })
    .await;
    let rate = &now["rates"][0];
    assert_eq!(
        (&rate["scope"], &rate["of"], &rate["set"], &rate["refused"]),
        (
            &json!("tool"),
            &json!("add_note"),
            &json!("shop"),
            &json!(1)
        ),
        "{now}"
    );
    assert_eq!(now["places"][0]["limit"], 3, "{now}");
    assert_eq!(now["budgets"][0]["set"], "shop", "{now}");
    assert_eq!(now["hedges"]["sent"], 0, "{now}");
    assert_eq!(now["loop_guard"], json!({"answered": 1, "held": 1}));

    gateway.measures(&[
        "callward_rate_limit_refusals_total{callward_scope=\"tool\",callward_server_set=\"shop\",gen_ai_tool_name=\"add_note\"} 1",
        "callward_rate_limit_calls_waiting{callward_scope=\"tool\",callward_server_set=\"shop\",gen_ai_tool_name=\"add_note\"} 0",
        "callward_server_calls_in_flight{callward_server=\"shop\"} 1",
        "callward_server_calls_limit{callward_server=\"shop\"} 3",
        "callward_server_calls_waiting{callward_server=\"shop\"} 0",
        "callward_server_calls_refused_total{callward_reason=\"shed\",callward_server=\"shop\"} 0",
        "callward_server_calls_refused_total{callward_reason=\"expired\",callward_server=\"shop\"} 0",
        "callward_retry_budget_tokens{callward_server_set=\"shop\"} 4",
        "callward_retry_budget_refusals_total{callward_server_set=\"shop\"} 0",
        "callward_hedges_sent_total 0",
        "callward_hedges_won_total 0",
        "callward_hedges_unsent_total{callward_reason=\"no_budget\"} 0",
        "callward_loop_guard_answers_total 1",
        "callward_loop_guard_calls_held 1",
    ]).await;
    slow.abort();
}
