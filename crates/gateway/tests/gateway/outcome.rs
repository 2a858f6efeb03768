//! What a caller is told of a call whose answer never came: over a real socket that breaks.

use serde_json::{Value, json};
use tollgate::ToolDefinition;
use tollgate_chaos::http::HttpServer;
use tollgate_chaos::{Break, Chaos, Era, Fault, Ledger};

use crate::support::{Gateway, ends, file, text};

/// A shop that runs every call, and breaks the connection before it answers.
async fn shop(ledger: &Ledger) -> HttpServer {
    let tool = |name: &str, reads: bool| {
        let listed = json!({
            "name": name, "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": reads, "destructiveHint": false},
        });
        ToolDefinition::from_json(listed.to_string()).unwrap()
    };
    let tools = [tool("create_order", false), tool("get_order", true)];
    let lost = Fault::LoseReply {
        sent: 0,
        broken: Break::Reset,
    };
    let chaos = Chaos::script(vec![Some(lost)]);
    HttpServer::start(Era::Modern, &tools, chaos, ledger.clone())
        .await
        .unwrap()
}

fn config(shop: &HttpServer) -> String {
    format!("[servers.shop]\nurl = {:?}\n", shop.url())
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_says_what_to_check_it_with() {
    let ledger = Ledger::new();
    let shop = shop(&ledger).await;
    let config = file(config(&shop));
    let path = config.path().to_str().unwrap();
    let call = [
        "call",
        "shop__create_order",
        r#"{"call": 1}"#,
        "--config",
        path,
    ];
    let done = ends(&call).await;
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let said = text(&done.stderr);
    for part in [
        "check with `shop__get_order` what it did before calling it again",
        "outcome_unknown, delivery unknown",
        "it may have run  sent ",
        "11 bytes of arguments  check with shop__get_order",
        "attempts 1",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    assert_eq!(text(&done.stdout), "");

    let call = ["call", "shop__create_order", r#"{"call": 2}"#, "--json"];
    let done = ends(&[&call[..], &["--config", path]].concat()).await;
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let said: Value = serde_json::from_str(text(&done.stdout)).unwrap();
    let error = &said["error"];
    assert_eq!(error["kind"], "outcome_unknown", "{said}");
    assert_eq!(error["outcome"]["verify_with"], "shop__get_order", "{said}");
    assert_eq!(error["outcome"]["tool"], "create_order", "{said}");
    assert_eq!(error["outcome"]["server"], "shop", "{said}");
    assert_eq!(error["outcome"]["failure"], "connection_lost", "{said}");
    let explain = ["explain", "shop__create_order", "--json", "--config", path];
    let said: Value = serde_json::from_str(text(&ends(&explain).await.stdout)).unwrap();
    assert_eq!(said["attempts"]["verify_with"], "shop__get_order", "{said}");
    for call in [1, 2] {
        assert_eq!(ledger.of(call).executions, 1, "sent once");
    }
}

#[tokio::test]
async fn all_attempts_of_a_read_that_keeps_failing_are_told() {
    let ledger = Ledger::new();
    let shop = shop(&ledger).await;
    let file = file(config(&shop));
    let path = file.path().to_str().unwrap();
    let done = ends(&[
        "call",
        "shop__get_order",
        r#"{"call": 3}"#,
        "--config",
        path,
    ])
    .await;
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let said = text(&done.stderr);
    for part in [
        "attempt 1  server shop  after 0 µs  connection_lost, delivery unknown: ",
        "attempt 3  server shop  after ",
        "attempts 3",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    assert!(!said.contains("check with"), "it only reads: {said}");
    drop(done);

    let gateway = Gateway::configured(&config(&shop)).await;
    let view = gateway.call("shop__get_order", json!({"call": 4})).await;
    assert_eq!(view["attempts"], 3, "{view}");
    let history = view["error"]["history"].as_array().unwrap();
    assert_eq!(history.len(), 3, "{view}");
    assert_eq!(history[0]["pause_ms"], 0, "{view}");
    for attempt in history {
        assert_eq!(attempt["server"], "shop", "{view}");
        assert_eq!(attempt["kind"], "connection_lost", "{view}");
        assert_eq!(attempt["delivery"], "unknown", "{view}");
    }
    assert_eq!(view["guarded"], Value::Null, "{view}");
}
