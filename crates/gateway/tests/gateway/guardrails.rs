//! `[guardrails]`: what calls may contain, how many run, and what clients get.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};

use crate::support::{Gateway, ends, file, result, said, sample, text};

const NOTE: &str = "orders__add_note";
const TOKEN: &str = "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";

/// A shop that all clients share.
fn shop() -> String {
    sample("orders") + "instances = \"shared\"\n"
}

fn note(text: &str) -> Value {
    json!({"order_id": 1, "text": text})
}

#[tokio::test]
async fn rules_refuse_redact_count_and_are_explained() {
    let config = format!(
        "[[guardrails.rules]]\ntool = [\"orders.*\"]\ndeny = {{ order_id = 2 }}\n\
         credentials = {{ arguments = \"redact\", results = \"redact\" }}\n\
         [[guardrails.rules]]\ntool = [\"orders.add_note\"]\nmax_calls = {{ hour = 2 }}\n{}",
        shop()
    );
    let gateway = Gateway::fixed(&config).await;
    let refused = gateway.order(2).await["error"].to_string();
    assert!(
        refused.contains("guardrail 1 refuses the call"),
        "{refused}"
    );
    assert!(gateway.order(1).await["result"].is_object());
    let noted = gateway.mcp(NOTE, note(&format!("a {TOKEN}"))).await;
    assert_ne!(result(&noted)["isError"], true, "{noted}");
    let order = gateway.order(1).await.to_string();
    assert!(
        !order.contains(TOKEN) && order.contains("a [redacted]"),
        "{order}"
    );
    assert!(gateway.mcp(NOTE, note("b")).await["result"].is_object());
    let over = gateway.mcp(NOTE, note("c")).await["error"].to_string();
    assert!(
        over.contains("guardrail 2") && over.contains("the next is free in"),
        "{over}"
    );
    let explain = [&["explain", NOTE][..], &gateway.here()].concat();
    let shown = ends(&explain).await;
    let shown = text(&shown.stdout);
    assert!(shown.contains(r#"deny "order_id = 2""#), "{shown}");
    assert!(shown.contains("rule 2: max_calls (hour 2)"), "{shown}");
    for (order, refused) in [(1, false), (2, true)] {
        let order = json!({"order_id": order}).to_string();
        let explain = ["explain", "orders__get_order", &order, "--json"];
        let shown = ends(&[&explain[..], &gateway.here()].concat()).await;
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let why =
            "guardrail 1 refuses the call of `get_order`: calls are denied where order_id = 2";
        let is_refused = |one: &Value| one["verdict"] == "refused" && one["reason"] == why;
        let decisions = shown["trail"]["decisions"].as_array().unwrap();
        assert_eq!(decisions.iter().any(is_refused), refused, "{shown}");
        let text = shown["text"].as_str().unwrap();
        assert_eq!(text.contains(why), refused, "{text}");
    }
}

/// Starts a service that answers as the text of the note says, and returns its URL.
async fn service() -> String {
    let screen = async |body: String| {
        let asked: Value = serde_json::from_str(&body).unwrap();
        let before = asked["phase"] == "before";
        let answer = match asked["arguments"]["text"].as_str() {
            Some("refuse") => json!({"allow": false, "reason": "no such note\u{1b}"}).to_string(),
            Some("replace") if before => {
                json!({"allow": true, "arguments": note("replaced")}).to_string()
            }
            Some("replaced") if !before => {
                let result = json!({"content": [{"type": "text", "text": "screened"}]});
                json!({"allow": true, "result": result}).to_string()
            }
            Some("late") => std::future::pending().await,
            Some("huge") => " ".repeat(5 << 20) + r#"{"allow": true}"#,
            Some("no JSON") => "yes".to_owned(),
            Some("twice") => r#"{"allow": false, "allow": true}"#.to_owned(),
            Some("list") => r#"{"allow": true, "arguments": []}"#.to_owned(),
            Some("fails") => return (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
            _ => json!({"allow": true}).to_string(),
        };
        (StatusCode::OK, answer)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = Router::new().route("/", post(screen)).into_make_service();
    tokio::spawn(async move { axum::serve(listener, service).await });
    url
}

#[tokio::test]
async fn a_webhook_replaces_and_refuses_and_a_hostile_one_lets_nothing_pass() {
    let url = service().await;
    for (on_failure, passes) in [("closed", false), ("open", true)] {
        let config = format!(
            "[[guardrails.rules]]\ntool = [\"orders.add_note\"]\nwebhook = true\n\
             [guardrails.webhook]\nurl = {url:?}\nsecret = \"a secret of at least 24 bytes\"\n\
             timeout = \"2s\"\non_failure = {on_failure:?}\n{}",
            shop()
        );
        let gateway = Gateway::fixed(&config).await;
        let refused = gateway.mcp(NOTE, note("refuse")).await["error"].to_string();
        assert!(
            refused.contains("refuses the call: no such note"),
            "{refused}"
        );
        let replaced = gateway.mcp(NOTE, note("replace")).await;
        assert_eq!(said(&replaced), "screened", "{replaced}");
        let order = gateway.order(1).await.to_string();
        assert!(
            order.contains("replaced") && !order.contains("refuse\""),
            "{order}"
        );
        for hostile in ["late", "huge", "no JSON", "twice", "list", "fails"] {
            let answer = gateway.mcp(NOTE, note(hostile)).await;
            assert_eq!(answer["result"].is_object(), passes, "{hostile}: {answer}");
            let error = answer["error"].to_string();
            assert!(
                passes || error.contains("gives no answer"),
                "{hostile}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn a_check_names_the_place_of_each_fault() {
    for (rules, faults) in [
        (
            "max_calls = { hour = 2000 }\n[[guardrails.rules]]\nwebhook = true\n",
            &[
                "`guardrails.rules.1.max_calls`: must be at most 1000",
                "`guardrails.rules.2.webhook`: expected a table [guardrails.webhook]",
            ][..],
        ),
        (
            "deny = { path = { matches = \"(\" } }\n",
            &[":2:17: `guardrails.rules.1.deny.path`: \"(\" is not a pattern"],
        ),
        ("tool = [\"orders\"]\n", &["expected SET.TOOL"]),
    ] {
        let config = file(format!("[[guardrails.rules]]\n{rules}{}", shop()));
        let path = config.path().to_str().unwrap();
        let done = ends(&["serve", "--check", "--config", path]).await;
        let printed = text(&done.stderr);
        assert!(!done.status.success());
        for part in faults {
            assert!(printed.contains(part), "{printed}");
        }
    }
}
