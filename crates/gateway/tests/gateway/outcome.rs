//! What a caller gets of a call whose answer never came: over a real socket that breaks.

use callward::ToolDefinition;
use callward_chaos::{Break, Chaos, Fault, Ledger};
use callward_testkit::hostile::Era;
use callward_testkit::hostile::http::HttpServer;
use serde_json::{Value, json};

use crate::scripted::Script;
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
    let tools = [
        tool("create_order", false),
        tool("get_order", true),
        tool("read_prices", true),
    ];
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

/// Answers a write with an error, and lets it land with the next read, after that read's answer.
const LATE: &str = r#"
case $line in
  *'"name":"add_note"'*)
    landing=1
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"failed"}}\n' "$id"
    continue ;;
esac
says "run $runs: ${value:-old}"
[ -z "$landing" ] || value=new
"#;

fn reads_and_writes() -> Value {
    let tool = |name: &str, reads: bool| {
        json!({
            "name": name, "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": reads, "destructiveHint": false},
        })
    };
    json!([tool("get", true), tool("add_note", false)])
}

#[tokio::test]
async fn a_write_that_lands_after_its_error_is_not_hidden_by_the_cache() {
    let server = Script {
        call: LATE,
        ..Script::counting(&reads_and_writes())
    };
    let config = format!("{}instances = \"shared\"\n", server.server("desk"));
    let gateway = Gateway::fixed(&config).await;
    let get = async || {
        let answer = gateway.mcp("desk__get", json!({})).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert_eq!(get().await, "run 1: old");
    assert_eq!(get().await, "run 1: old", "it is cached");
    let answer = gateway.mcp("desk__add_note", json!({})).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(get().await, "run 3: old", "it has not landed yet");
    assert_eq!(get().await, "run 4: new");
}

#[tokio::test]
async fn what_another_gateway_does_not_know_is_unknown_here_too() {
    let ledger = Ledger::new();
    let shop = shop(&ledger).await;
    let inner = Gateway::configured(&config(&shop)).await;
    let url = inner.public("/mcp");
    let outer = format!("[servers.far]\nurl = {url:?}\nprefix = false\n");
    let outer = Gateway::configured(&outer).await;
    let answer = outer.mcp("shop__create_order", json!({"call": 1})).await;
    let data = &answer["error"]["data"];
    assert_eq!(data["kind"], "outcome_unknown", "{answer}");
    assert_eq!(data["delivery"], "unknown", "{answer}");
    assert_eq!(data["server"], "far", "{answer}");
    assert_eq!(data["outcome"]["verifyWith"], "shop__get_order", "{answer}");
    assert_eq!(ledger.of(1).executions, 1);
}

#[tokio::test]
async fn refusals_of_another_gateway_open_no_breaker() {
    let inner = "[servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\nprefix = false\n\
                 [servers.orders.tools.add_note]\nrateLimitHint = 1\n";
    let inner = Gateway::configured(inner).await;
    let url = inner.public("/mcp");
    let outer = format!("[servers.far]\nurl = {url:?}\nprefix = false\n");
    let outer = Gateway::configured(&outer).await;
    let note = || outer.mcp("add_note", json!({"order_id": 1, "text": "x"}));
    assert!(note().await["result"].is_object());
    for _ in 0..5 {
        let answer = note().await;
        let data = &answer["error"]["data"];
        assert_eq!(data["kind"], "rate_limited", "{answer}");
        assert!(data["retryAfterMs"].is_u64(), "{answer}");
    }
}

#[tokio::test]
async fn a_client_of_two_gateways_is_told_of_no_tool_that_it_does_not_have() {
    let ledger = Ledger::new();
    let shop = shop(&ledger).await;
    // the outer one takes it for a read, as the server says, and so has nothing to verify it with
    let inner = format!(
        "[breaker]\nfailures = 100\n{}[servers.shop.tools.get_order]\nreadOnlyHint = false\nidempotentHint = false\n\
         verify_with = \"read_prices\"\n",
        config(&shop)
    );
    let inner = Gateway::configured(&inner).await;
    let reported = inner.mcp("shop__get_order", json!({"call": 1})).await;
    let verifier = &reported["error"]["data"]["outcome"]["verifyWith"];
    assert_eq!(verifier, "shop__read_prices", "{reported}");
    let url = inner.public("/mcp");
    let outer = Gateway::configured(&format!("[servers.far]\nurl = {url:?}\n")).await;
    for (tool, verifier) in [
        ("far__shop__create_order", json!("far__shop__get_order")),
        ("far__shop__get_order", Value::Null),
    ] {
        let answer = outer.mcp(tool, json!({"call": 2})).await;
        let data = &answer["error"]["data"];
        assert_eq!(data["delivery"], "unknown", "{answer}");
        assert_eq!(data["outcome"]["verifyWith"], verifier, "{answer}");
        let said = answer.to_string();
        for named in said.split("check with `").skip(1) {
            assert!(named.starts_with("far__shop__get_order`"), "{answer}");
        }
        let verifiers = said.matches("\"verifyWith\"").count();
        assert_eq!(verifiers, usize::from(verifier.is_string()), "{answer}");
    }
}
