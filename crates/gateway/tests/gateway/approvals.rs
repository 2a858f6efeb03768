//! `[approvals]`: calls wait for an operator, who decides with the command line.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::{
    CALLWARD, Gateway, Legacy, SERVE, answer_of, answered, callward, ends, file, result, said,
    sample, serve, text, until,
};

pub(crate) const DELETE: &str = "orders__delete_order";

/// A config in which this is in `[approvals]`; all clients share the shop.
pub(crate) fn config(approvals: &str) -> String {
    let shop = sample("orders");
    format!("[approvals]\n{approvals}\n{shop}instances = \"shared\"\n")
}

pub(crate) fn order(id: u32) -> Value {
    json!({ "order_id": id })
}

/// Runs `callward approvals` beside a gateway. Returns whether it succeeds, and what it prints.
pub(crate) async fn approvals(gateway: &Gateway, args: &[&str]) -> (bool, String) {
    let done = ends(&[&["approvals"], args, &gateway.here()].concat()).await;
    let printed = format!("{}{}", text(&done.stdout), text(&done.stderr));
    (done.status.success(), printed)
}

/// Waits until `approvals list` shows this many pending requests, and returns them.
pub(crate) async fn pending(gateway: &Gateway, count: usize) -> Vec<Value> {
    until("the requests", || async {
        let (_, listed) = approvals(gateway, &["list", "--json"]).await;
        let mut listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        listed.retain(|request| request["state"] == "pending");
        (listed.len() == count).then_some(listed)
    })
    .await
}

pub(crate) async fn deleted(gateway: &Gateway) -> u64 {
    let stats = gateway.stats("orders").await;
    stats["tools"]["delete_order"]["executions"]
        .as_u64()
        .unwrap_or_default()
}

pub(crate) fn id(request: &Value) -> &str {
    request["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_call_that_an_operator_approves_while_it_waits_runs_once() {
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("audit.jsonl");
    let log = log.to_str().unwrap();
    let audit = format!("[audit]\npath = {log:?}\nopen_world_path = {log:?}\n");
    let gateway = Gateway::configured(&format!("{audit}{}", config(""))).await;
    let waits = gateway.begin(
        DELETE,
        &json!({"order_id": 1, "api_key": "hunter2", "x": "\u{202e}"}),
    );
    let request = pending(&gateway, 1).await.remove(0);
    let (_, listed) = approvals(&gateway, &[]).await;
    let row = listed.lines().nth(1).unwrap();
    let short = &id(&request)[..8];
    let expected = format!("{short}  pending  orders  delete_order  anonymous  destructive  ");
    assert!(row.starts_with(&expected), "{listed}");
    let (_, shown) = approvals(&gateway, &["show", short]).await;
    let arguments = r#"{"api_key":"[redacted]","order_id":1,"x":"\u{202e}"}"#;
    assert!(shown.contains(arguments), "{shown}");
    assert!(shown.contains("are not shown"), "{shown}");
    assert_eq!(deleted(&gateway).await, 0);

    let (done, printed) = approvals(&gateway, &["approve", short]).await;
    assert!(done && printed.contains("is approved"), "{printed}");
    let answer = answer_of(&waits.await.unwrap().1);
    assert_ne!(result(&answer)["isError"], true, "{answer}");
    assert_eq!(deleted(&gateway).await, 1);
    let (_, all) = approvals(&gateway, &["list", "--all", "--json"]).await;
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all[0]["state"], "succeeded", "{all}");
    let decision = &all[0]["decision"];
    assert_eq!([&decision["by"], &decision["channel"]], ["operator", "cli"]);

    let audited = text(&ends(&["audit", "show", log, "--json"]).await.stdout).to_owned();
    let audited: Vec<Value> = audited
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| -> Vec<&Value> {
        audited
            .iter()
            .filter(|record| record["kind"] == kind)
            .collect()
    };
    let approval = of("approval");
    let outcomes: Vec<_> = approval.iter().map(|record| &record["outcome"]).collect();
    let expected = ["pending", "shown", "approved", "consumed", "succeeded"];
    assert_eq!(outcomes, expected);
    assert_eq!(approval[1]["by"], "operator");
    let called = of("call")[0];
    assert_eq!(called["approval"]["request"], request["id"], "{called}");
    assert_eq!(called["approval"]["outcome"], "approved", "{called}");
    let verified = ends(&["audit", "verify", log]).await;
    let verified = text(&verified.stdout);
    assert!(
        verified.contains("1 request for approval of tools with"),
        "{verified}"
    );

    // what has ended is not decided once more, and what is not there not at all
    for (args, expected) in [
        (["approve", short], "is succeeded"),
        (["deny", "0"], "no request \"0\""),
        (["show", "abcdefg"], "no request"),
    ] {
        let (done, printed) = approvals(&gateway, &args).await;
        assert!(!done && printed.contains(expected), "{printed}");
    }
    let path = format!("/api/approvals/{}/deny", id(&request));
    assert_eq!(gateway.post(&path, "application/json", "").await.0, 409);
    let unknown = "/api/approvals/0000/approve";
    assert_eq!(gateway.post(unknown, "application/json", "{}").await.0, 404);
    let wrong = r#"{"channel":"mcp"}"#;
    assert_eq!(gateway.post(&path, "application/json", wrong).await.0, 400);
}

#[tokio::test]
async fn a_call_that_is_denied_gets_the_note_and_does_not_run() {
    let gateway = Gateway::configured(&config("")).await;
    let waits = gateway.begin(DELETE, &order(1));
    let request = pending(&gateway, 1).await.remove(0);
    let deny = ["deny", id(&request), "--note", "archive it\u{1b}[2J"];
    let (done, printed) = approvals(&gateway, &deny).await;
    assert!(done && printed.contains("is denied"), "{printed}");
    let (_, shown) = approvals(&gateway, &["show", id(&request)]).await;
    assert!(shown.contains("note       archive it\\u{1b}[2J"), "{shown}");
    let answer = answer_of(&waits.await.unwrap().1);
    assert_eq!(result(&answer)["isError"], true, "{answer}");
    assert!(said(&answer).contains("archive it"), "{answer}");
    // and an equal one is answered at once
    let again = gateway.mcp(DELETE, order(1)).await;
    assert!(said(&again).contains("denied by a person"), "{again}");
    assert_eq!(deleted(&gateway).await, 0);
}

#[tokio::test]
async fn a_request_outlives_a_gateway_that_is_killed() {
    let mut killed = Gateway::configured(&config("")).await;
    let waits = killed.begin(DELETE, &order(1));
    let before = pending(&killed, 1).await.remove(0);
    killed.killed().await;
    drop(waits.await);
    let again = callward(&[&SERVE[..], &["--config", killed.config()]].concat());
    let gateway = Gateway::started(again, None, Some(killed.state.clone())).await;
    let after = pending(&gateway, 1).await.remove(0);
    for name in ["id", "expires"] {
        assert_eq!(before[name], after[name]);
    }
    assert!(approvals(&gateway, &["approve", id(&after)]).await.0);
    let answer = gateway.mcp(DELETE, order(1)).await;
    assert_ne!(result(&answer)["isError"], true, "{answer}");
    assert_eq!(deleted(&gateway).await, 1);
    let waits = gateway.begin(DELETE, &order(1));
    assert_ne!(pending(&gateway, 1).await[0]["id"], before["id"]);
    waits.abort();
    assert_eq!(deleted(&gateway).await, 1);
}

#[tokio::test]
async fn an_approval_is_for_one_call_of_one_principal_with_its_arguments() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let dir = state.path().to_str().unwrap();
    let mut keys = Vec::new();
    for args in [
        &["ada"][..],
        &["bob", "--role", "viewer"],
        &["eve", "--role", "operator"],
    ] {
        let create = [&["keys", "create"], args, &["--state-dir", dir]].concat();
        keys.push(text(&ends(&create).await.stdout).trim().to_owned());
    }
    let (command, file) = serve(&format!("[auth]\nkeys = true\n{}", config("hold = \"0s\"")));
    let gateway = Gateway::started(command, Some(file), Some(state.clone())).await;
    let asks = async |key: &str, order_id: u32| {
        let request = gateway.mcp_request(DELETE, &order(order_id), &json!({}));
        answer_of(&answered(request.bearer_auth(key)).await.1)
    };
    let waits = |answer: &Value| {
        assert_eq!(result(answer)["resultType"], "input_required", "{answer}");
    };
    let decide = async |key: &str, id: &str| {
        let url = gateway.at(&format!("/api/approvals/{id}/approve"));
        let request = gateway
            .http
            .post(url)
            .header("content-type", "application/json");
        answered(request.bearer_auth(key)).await
    };
    waits(&asks(&keys[0], 1).await);
    let first = pending(&gateway, 1).await.remove(0);
    // neither by a client, with a role or without, nor by a viewer
    for key in &keys[..2] {
        assert_eq!(decide(key, id(&first)).await.0, 403);
    }
    assert!(approvals(&gateway, &["approve", id(&first)]).await.0);

    waits(&asks(&keys[1], 1).await);
    waits(&asks(&keys[0], 2).await);
    let called = [&["call", DELETE, r#"{"order_id": 1}"#], &gateway.here()[..]].concat();
    let done = ends(&called).await;
    assert!(
        text(&done.stdout).contains("waits for a person"),
        "{done:?}"
    );
    assert_eq!(deleted(&gateway).await, 0);
    // what the operator asks for is decided by another one
    let open = pending(&gateway, 3).await;
    let own = open
        .iter()
        .find(|one| one["principal"] == "operator")
        .unwrap();
    let (done, printed) = approvals(&gateway, &["approve", id(own)]).await;
    assert!(!done && printed.contains("another operator"), "{printed}");
    let (status, body) = decide(&keys[2], id(own)).await;
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["decision"]["channel"], "api", "{body}");

    // two sessions of the one that asked: one call runs
    let bearer = vec![("authorization", format!("Bearer {}", keys[0]))];
    let one = Legacy::with(&gateway.url, bearer.clone()).await.unwrap();
    let other = Legacy::with(&gateway.url, bearer).await.unwrap();
    tokio::join!(one.call(DELETE, order(1)), other.call(DELETE, order(1)));
    assert_eq!(deleted(&gateway).await, 1);
    waits(&asks(&keys[0], 1).await);
    assert_eq!(deleted(&gateway).await, 1);
}

#[tokio::test]
async fn requests_that_cannot_be_opened_stop_the_start() {
    let mut gateway = Gateway::configured(&config("")).await;
    let state = gateway.state.path().to_owned();
    let config = gateway.config().to_owned();
    let dir = state.to_str().unwrap();
    let again = [&SERVE[..], &["--config", &config, "--state-dir", dir]].concat();
    let refused = async |expected: &str| {
        let done = ends(&again).await;
        let printed = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    };
    refused("is open elsewhere").await;
    gateway.killed().await;
    let path = |kind: &str| {
        let entries = std::fs::read_dir(state.join("approvals")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.extension().is_some_and(|end| end == kind))
            .unwrap()
    };
    std::fs::write(path("key"), [7; 32]).unwrap();
    refused("does not open").await;
    std::fs::write(path("redb"), [7; 4096]).unwrap();
    refused("is damaged").await;
    let check = [&again[..], &["--check"]].concat();
    assert!(ends(&check).await.status.success(), "--check opens nothing");
}

#[tokio::test]
async fn without_operators_no_call_is_held_and_none_runs() {
    let file = file(config("").replace("CALLWARD", CALLWARD));
    let path = file.path().to_str().unwrap();
    let state = tempfile::tempdir().unwrap();
    let state = ["--state-dir", state.path().to_str().unwrap()];
    let call = ["call", DELETE, r#"{"order_id": 1}"#, "--config", path];
    let done = ends(&[&call, &state[..]].concat()).await;
    assert!(
        text(&done.stdout).contains("waits for a person"),
        "{done:?}"
    );
    let explain = ends(&["explain", DELETE, "--config", path]).await;
    assert!(
        text(&explain.stdout).contains("waits for an operator"),
        "{explain:?}"
    );
    // nowhere to keep them, and nowhere to decide
    for (args, expected) in [
        (&call[..], "--state-dir"),
        (&["run", "--config", path], "no operator can decide"),
    ] {
        let done = ends(args).await;
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(text(&done.stderr).contains(expected), "{done:?}");
    }
    // a gateway that asks no operator says so
    let gateway = Gateway::sample().await;
    let (done, printed) = approvals(&gateway, &["list"]).await;
    assert!(!done && printed.contains("no `[approvals]`"), "{printed}");
}
