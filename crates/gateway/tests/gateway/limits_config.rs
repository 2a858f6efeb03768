//! What a config says of limits, loops, second attempts and times: it is heeded, not only read.

use serde_json::{Value, json};

use crate::support::{CALLWARD, Gateway, callward, file, text, within};

const SHOP: &str = "[servers.shop]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n";

/// Adds one note; a write, which no cache answers.
async fn note(gateway: &Gateway) -> Value {
    let arguments = json!({"order_id": 1, "text": "x"});
    gateway.mcp("shop__add_note", arguments).await
}

#[tokio::test]
async fn a_rate_refuses_what_comes_too_often_and_says_when_to_come_again() {
    // one call a minute, and no caller waits for the next
    for rate in [
        "[limits]\nper_principal = 1\nmax_wait = \"0s\"\nSHOP",
        "[limits]\nmax_wait = \"0s\"\nSHOPcalls_per_minute = 1\n",
        "[limits]\nmax_wait = \"0s\"\nSHOP[servers.shop.tools.add_note]\nrateLimitHint = 1\n",
    ] {
        let config = rate.replace("SHOP", SHOP);
        let gateway =
            Gateway::configured(&format!("[retry]\nmax_retry_after = \"1s\"\n{config}")).await;
        let passed = note(&gateway).await;
        assert!(passed["result"].is_object(), "{rate}: {passed}");
        let refused = note(&gateway).await;
        let data = &refused["error"]["data"];
        assert_eq!(data["kind"], "rate_limited", "{rate}: {refused}");
        assert_eq!(data["delivery"], "not_sent", "{rate}: {refused}");
        let wait = data["retryAfterMs"].as_u64().unwrap();
        assert!((1..=60_000).contains(&wait), "{rate}: {refused}");
    }
}

#[tokio::test]
async fn the_rates_that_tools_declare_may_be_left_out() {
    let hinted = format!(
        "[limits]\ntools = false\n{SHOP}[servers.shop.tools.add_note]\nrateLimitHint = 1\n"
    );
    let gateway = Gateway::configured(&hinted).await;
    for _ in 0..3 {
        let passed = note(&gateway).await;
        assert!(passed["result"].is_object(), "{passed}");
    }
}

#[tokio::test]
async fn a_call_that_fails_over_and_over_is_answered_in_the_servers_place() {
    for (guard, executions) in [
        ("failures = 2\nwithout_session = \"by_principal\"\n", 2),
        ("failures = 2\nenabled = false\n", 3),
    ] {
        let gateway = Gateway::configured(&format!("[loop_guard]\n{guard}{SHOP}")).await;
        let mut last = Value::Null;
        for _ in 0..3 {
            last = gateway
                .mcp(
                    "shop__set_status",
                    json!({"order_id": 99, "status": "paid"}),
                )
                .await;
        }
        assert_eq!(last["result"]["isError"], true, "{last}");
        let stats = gateway.stats("shop__orders_stats", "after").await;
        let ran = &stats["tools"]["set_status"]["executions"];
        assert_eq!(ran, executions, "{guard}: {last}");
        let held = last.to_string().contains("failed 2 times in a row");
        assert_eq!(held, executions == 2, "{guard}: {last}");
        // other arguments are not a loop
        let one = json!({"order_id": 1, "status": "paid"});
        let other = gateway.mcp("shop__set_status", one).await;
        assert_ne!(other["result"]["isError"], true, "{other}");
    }
}

#[tokio::test]
async fn who_finds_neither_a_place_nor_room_to_wait_is_refused_at_once() {
    for places in [
        "max_concurrent_per_tool = 1\nmax_waiting = 0\n",
        "max_waiting = 0\nshed = \"oldest\"\n[servers.shop.tools.sales_report]\nmax_concurrent = 1\n",
    ] {
        let config = format!("[retry]\nmax_attempts = 1\n{SHOP}{places}");
        let gateway = Gateway::configured(&config).await;
        let report = |region: &str| json!({"region": region, "delay_ms": 60_000});
        let slow = gateway.mcp_request("shop__sales_report", &report("a"));
        let slow = tokio::spawn(slow.send());
        gateway.running("shop", 1).await;
        let refused = gateway.mcp("shop__sales_report", report("b")).await;
        let data = &refused["error"]["data"];
        assert_eq!(data["kind"], "overloaded", "{places}: {refused}");
        assert_eq!(data["delivery"], "not_sent", "{places}: {refused}");
        slow.abort();
    }
}

#[tokio::test]
async fn what_to_verify_with_is_told_when_an_outcome_is_unknown() {
    // a write that outlasts its attempt; by its name nothing would be found to check with
    let config = format!(
        "[limits]\nattempt_timeout = \"200ms\"\n{SHOP}[servers.shop.tools.sales_report]\n\
         readOnlyHint = false\nidempotentHint = false\nverify_with = \"get_order\"\n"
    );
    let gateway = Gateway::configured(&config).await;
    let arguments = json!({"region": "x", "delay_ms": 60_000});
    let failed = gateway.mcp("shop__sales_report", arguments).await;
    let data = &failed["error"]["data"];
    assert_eq!(data["delivery"], "unknown", "{failed}");
    assert_eq!(data["outcome"]["verifyWith"], "shop__get_order", "{failed}");
}

#[tokio::test]
async fn a_gateway_with_every_layer_on_answers() {
    let servers = ["one", "two"].map(|name| {
        let server = SHOP.replace("servers.shop", &format!("servers.{name}"));
        format!("{server}set = \"shop\"\nidempotency_keys = true\nshed = \"oldest\"\n")
    });
    let config = format!("[hedge]\nenabled = true\n{}", servers.concat());
    let gateway = Gateway::configured(&config).await;
    let answer = gateway.mcp("shop__get_order", json!({"order_id": 1})).await;
    assert_eq!(answer["result"]["structuredContent"]["id"], 1, "{answer}");
}

#[tokio::test]
async fn the_environments_tool_timeout_ends_an_attempt() {
    let arguments = json!({"region": "x", "delay_ms": 60_000}).to_string();
    let config = file(format!("[retry]\nmax_attempts = 1\n{SHOP}").replace("CALLWARD", CALLWARD));
    let path = config.path().to_str().unwrap();
    let mut command = callward(&["call", "shop__sales_report", &arguments, "--config", path]);
    let done = command.env("MCP_TOOL_TIMEOUT", "200").output();
    let done = within("the end", done).await.unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(text(&done.stderr).contains("200ms"), "{done:?}");
}
