//! What a config says of limits, loops, second attempts and times is heeded, shown and measured.
//! The table of `callward limits` is in `tests/golden/running/limits.md`.

use reqwest::RequestBuilder;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ServiceExt};
use serde_json::{Value, json};

use crate::audit::records;
use crate::auth::keys;
use crate::support::{
    CALLWARD, Gateway, call, callward, file, http, result, sample, text, until, within,
};

/// A config with this before the server `shop`, and this in its section.
fn shop(before: &str, more: &str) -> String {
    format!("{before}\n{}{more}\n", sample("shop"))
}

/// Adds one note; a write, which no cache answers.
async fn note(gateway: &Gateway) -> Value {
    let arguments = json!({"order_id": 1, "text": "x"});
    gateway.mcp("shop__add_note", arguments).await
}

/// Arguments of a report that takes a minute.
fn slow(region: &str) -> Value {
    json!({"region": region, "delay_ms": 60_000})
}

const HINT: &str = "[servers.shop.tools.add_note]\nrateLimitHint = 1";

#[tokio::test]
async fn what_limits_hold_back_and_refuse_is_shown_and_measured() {
    let gateway = Gateway::configured(&shop("", &format!("max_concurrent = 3\n{HINT}"))).await;
    result(&note(&gateway).await);
    // one call a minute, and no caller waits that long
    let refused = note(&gateway).await;
    assert_eq!(
        refused["error"]["data"]["kind"], "rate_limited",
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
    let held = gateway.begin("shop__sales_report", &slow("north"));
    let now = until("the call in flight", || async {
        let now: Value = gateway.json("/api/limits").await;
        (now["places"][0]["in_flight"] == 1).then_some(now)
    })
    .await;
    let rate = ["scope", "of", "set"].map(|key| &now["rates"][0][key]);
    assert_eq!(rate, ["tool", "add_note", "shop"], "{now}");
    assert_eq!(now["rates"][0]["refused"], 1, "{now}");
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
    held.abort();
}

#[tokio::test]
async fn a_rate_refuses_what_comes_too_often_and_says_when_to_come_again() {
    // one call a minute, and no caller waits for the next
    for (limits, more) in [("", "calls_per_minute = 1"), ("", HINT)] {
        let before =
            format!("[retry]\nmax_retry_after = \"1s\"\n[limits]\nmax_wait = \"0s\"\n{limits}");
        let gateway = Gateway::configured(&shop(&before, more)).await;
        result(&note(&gateway).await);
        let refused = note(&gateway).await;
        let data = &refused["error"]["data"];
        assert_eq!(data["kind"], "rate_limited", "{before}: {refused}");
        assert_eq!(data["delivery"], "not_sent", "{before}: {refused}");
        let wait = data["retryAfterMs"].as_u64().unwrap();
        assert!((1..=60_000).contains(&wait), "{before}: {refused}");
    }
    // the rates that tools declare may be left out
    let gateway = Gateway::configured(&shop("[limits]\ntools = false", HINT)).await;
    for _ in 0..3 {
        result(&note(&gateway).await);
    }
}

#[tokio::test]
async fn a_principal_over_its_limit_gets_429_and_another_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let gateway = Gateway::configured(&format!(
        "[auth]\nkeys = true\n[principals]\ncalls_per_minute = 2\nlists_per_minute = 1\n\
         [audit]\npath = {path:?}\nopen_world_path = {path:?}\nrecord = \"all\"\n{}",
        sample("orders")
    ))
    .await;
    let mut all = Vec::new();
    for name in ["ada", "bob"] {
        let key = keys(&gateway, &["create", name]).await.0.trim().to_owned();
        until("the key", || async {
            // no method of this revision, so that nothing is counted
            let answer = gateway
                .modern("ping", json!({}))
                .bearer_auth(&key)
                .send()
                .await;
            (answer.unwrap().status() == 404).then_some(())
        })
        .await;
        all.push(key);
    }
    let asked = async |request: RequestBuilder, key: &str| {
        let answer = within("an answer", request.bearer_auth(key).send())
            .await
            .unwrap();
        let after = answer.headers().get("retry-after");
        let after: u64 = after.map_or(0, |after| after.to_str().unwrap().parse().unwrap());
        (
            answer.status().as_u16(),
            after,
            answer.text().await.unwrap(),
        )
    };
    let order = || gateway.mcp_request("orders__get_order", &json!({"order_id": 1}), &json!({}));
    let list = || gateway.modern("tools/list", json!({}));
    // a name that no tool has counts, too
    let unknown = gateway.mcp_request("orders__get_ordex", &json!({}), &json!({}));
    for request in [order(), unknown, list()] {
        assert_eq!(asked(request, &all[0]).await.0, 200);
    }
    for (request, limit, longest) in [
        (order(), "calls_per_minute", 30),
        (list(), "lists_per_minute", 60),
    ] {
        let (status, after, body) = asked(request, &all[0]).await;
        assert_eq!(status, 429, "{body}");
        assert!((1..=longest).contains(&after), "{after} s");
        assert!(
            body.contains(limit) && body.contains("rate_limited"),
            "{body}"
        );
    }
    // a client of another kind, whose `initialize` is its only list
    let config = StreamableHttpClientTransportConfig::with_uri(gateway.url.as_str());
    let config = config.auth_header(all[1].as_str());
    let transport = StreamableHttpClientTransport::with_client(http(), config);
    let client = within("connecting", ().serve(transport)).await.unwrap();
    let arguments = json!({"order_id": 1}).as_object().cloned().unwrap();
    let params = CallToolRequestParams::new("orders__get_order").with_arguments(arguments);
    for _ in 0..2 {
        let answer = within("the call", client.call_tool(params.clone())).await;
        assert_ne!(answer.unwrap().is_error, Some(true));
    }
    let errors = [
        within("the call", client.call_tool(params))
            .await
            .unwrap_err(),
        within("the list", client.list_tools(None))
            .await
            .unwrap_err(),
    ];
    for error in errors {
        // it reads the status, and the time to wait
        let said = format!("{error:?}");
        assert!(said.contains("status: 429, retry_after: Some("), "{said}");
    }
    gateway
        .measures(&[
            "callward_rate_limit_refusals_total{callward_reason=\"calls_per_minute\",callward_scope=\"principal\"} 2",
            "callward_rate_limit_refusals_total{callward_reason=\"lists_per_minute\",callward_scope=\"principal\"} 2",
            "callward_rate_limit_refusals_total{callward_reason=\"concurrent\",callward_scope=\"principal\"} 0",
        ])
        .await;
    drop(client);
    gateway.stopped().await;
    let calls = records(&path, "call");
    let refused = calls.iter().filter(|call| call["outcome"] == "refused");
    let refused: Vec<_> = refused
        .map(|call| (&call["decision"]["by"], &call["error"]))
        .collect();
    assert_eq!(refused.len(), 2);
    for (by, error) in refused {
        assert_eq!(
            (by, &error["limit"]),
            (&json!("principal_limit"), &json!("calls_per_minute"))
        );
    }
}

#[tokio::test]
async fn a_call_that_fails_over_and_over_is_answered_in_the_servers_place() {
    for (guard, executions) in [
        ("without_session = \"by_principal\"", 2),
        ("enabled = false", 3),
    ] {
        let guard = format!("[loop_guard]\nfailures = 2\n{guard}");
        let gateway = Gateway::configured(&shop(&guard, "")).await;
        let paid = async |order: u32| {
            let arguments = json!({"order_id": order, "status": "paid"});
            gateway.mcp("shop__set_status", arguments).await
        };
        let all = [paid(99).await, paid(99).await, paid(99).await];
        let last = &all[2];
        assert_eq!(last["result"]["isError"], true, "{last}");
        let stats = gateway.stats("shop").await;
        let ran = &stats["tools"]["set_status"]["executions"];
        assert_eq!(ran, executions, "{guard}: {last}");
        let held = last.to_string().contains("failed 2 times in a row");
        assert_eq!(held, executions == 2, "{guard}: {last}");
        // other arguments are not a loop
        let other = paid(1).await;
        assert_ne!(result(&other)["isError"], true, "{other}");
    }
}

#[tokio::test]
async fn who_finds_neither_a_place_nor_room_to_wait_is_refused_at_once() {
    for places in [
        "max_concurrent_per_tool = 1\nmax_waiting = 0",
        "max_waiting = 0\nshed = \"oldest\"\n[servers.shop.tools.sales_report]\nmax_concurrent = 1",
    ] {
        let gateway = Gateway::configured(&shop("[retry]\nmax_attempts = 1", places)).await;
        let held = gateway.begin("shop__sales_report", &slow("a"));
        gateway.running("shop", 1).await;
        let refused = gateway.mcp("shop__sales_report", slow("b")).await;
        let data = &refused["error"]["data"];
        assert_eq!(data["kind"], "overloaded", "{places}: {refused}");
        assert_eq!(data["delivery"], "not_sent", "{places}: {refused}");
        held.abort();
    }
}

#[tokio::test]
async fn a_gateway_with_every_layer_on_answers() {
    let servers = ["one", "two"].map(|name| {
        let more = "set = \"shop\"\nidempotency_keys = true\nshed = \"oldest\"\n";
        sample(name) + more
    });
    let config = format!("[hedge]\nenabled = true\n{}", servers.concat());
    let gateway = Gateway::configured(&config).await;
    let answer = gateway.mcp("shop__get_order", json!({"order_id": 1})).await;
    assert_eq!(result(&answer)["structuredContent"]["id"], 1, "{answer}");
}

#[tokio::test]
async fn the_environments_tool_timeout_ends_an_attempt() {
    let arguments = slow("x").to_string();
    let config = shop("[retry]\nmax_attempts = 1", "").replace("CALLWARD", CALLWARD);
    let config = file(config);
    let path = config.path().to_str().unwrap();
    let mut command = callward(&["call", "shop__sales_report", &arguments, "--config", path]);
    let done = command.env("MCP_TOOL_TIMEOUT", "200").output();
    let done = within("the end", done).await.unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(text(&done.stderr).contains("200ms"), "{done:?}");
}
