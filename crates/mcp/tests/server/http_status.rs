//! What is refused in the modern era, and what the other methods answer.

use std::time::Duration;

use callward_mcp::server::HttpOptions;
use reqwest::Method;
use serde_json::json;

use crate::http::{INITIALIZE, META, Server, ask, call, json, status};
use crate::http_refusals::{Case, check, request, table};

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
const MODERN: &str = r#"
method             | 404 | -32601 | resources/subscribe | META |
initialize         | 404 | -32601 | initialize | "protocolVersion":"2025-11-25",META |
ping               | 404 | -32601 | ping       | META |
no version header  | 400 | -32020 | tools/list | META | mcp-protocol-version=
other version      | 400 | -32020 | tools/list | META | mcp-protocol-version=2025-11-25
no method header   | 400 | -32020 | tools/list | META | mcp-method=
other method       | 400 | -32020 | tools/list | META | mcp-method=tools/call
no name header     | 400 | -32020 | tools/call | "name":"echo",META |
other name         | 400 | -32020 | tools/call | "name":"odd",META  | mcp-name=echo
revision           | 400 | -32022 | tools/list | FUTURE | mcp-protocol-version=2031-01-01
no metadata        | 400 | -32602 | tools/list |      |
no capabilities    | 400 | -32602 | tools/list | BARE |
discovery          | 400 | -32602 | server/discover |  | mcp-protocol-version= mcp-method=
cursor             | 200 | -32602 | tools/list | "cursor":"x",META |
listen to what     | 200 | -32602 | subscriptions/listen | META |
listen, no events  | 406 | -32600 | subscriptions/listen | LISTEN | accept=application/json
"#;

fn refused_in_the_modern_era() -> Vec<Case> {
    let future = META.replace("2026-07-28", "2031-01-01");
    let (version, _) = META.split_once(',').unwrap();
    let rows = MODERN
        .replace("LISTEN", r#""notifications":{},META"#)
        .replace("FUTURE", &future)
        .replace("BARE", &format!("{version}}}"))
        .replace("META", META);
    table(&rows, |method| {
        vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ]
    })
}

#[tokio::test]
async fn a_modern_refusal_has_its_status_its_code_and_the_id_that_was_sent() {
    check(refused_in_the_modern_era()).await;
}

#[tokio::test]
async fn an_unsupported_revision_is_told_which_are_supported() {
    let server = Server::start().await;
    let body = request("tools/list", &META.replace("2026-07-28", "2031-01-01"));
    let answer = server
        .post(body)
        .header("mcp-protocol-version", "2031-01-01");
    let data = ask(answer).await["error"]["data"].take();
    assert_eq!(data["requested"], "2031-01-01");
    let supported = data["supported"].as_array().unwrap();
    assert!(supported.contains(&json!("2026-07-28")));
}

#[tokio::test]
async fn get_and_delete_want_a_session_and_an_event_stream() {
    let server = Server::start().await;
    let session = server.session().await;
    let unknown = "00000000-0000-4000-8000-000000000000".to_owned();
    let (known, events, any) = (Some(&session), "text/event-stream", "*/*");
    let unknown = Some(&unknown);
    let modern = Some("2026-07-28");
    let cases = [
        ("no session", Method::GET, events, None, None, 400),
        ("unknown", Method::GET, events, unknown, None, 404),
        ("accept", Method::GET, "application/json", known, None, 406),
        ("modern", Method::GET, events, known, modern, 405),
        ("no session", Method::DELETE, any, None, None, 400),
        ("unknown", Method::DELETE, any, unknown, None, 404),
        ("head", Method::HEAD, events, known, None, 405),
        ("put", Method::PUT, any, known, None, 405),
    ];
    for (what, method, accept, session, version, status) in cases {
        let mut request = server.client.request(method.clone(), &server.url);
        request = request.header("accept", accept);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{method} {what}");
        if status == 405 {
            assert!(answer.headers()["allow"].to_str().unwrap().contains("POST"));
        }
    }
    // whatever the method, a host that is not allowed is refused first
    for method in [Method::HEAD, Method::PUT] {
        let request = server.client.request(method, &server.url);
        assert_eq!(status(request.header("host", "evil.example")).await, 403);
    }
}

#[tokio::test]
async fn origins_and_hosts_that_are_listed_pass() {
    let mut options = HttpOptions::default();
    options.allowed_hosts = vec!["gate.example".parse().unwrap()];
    options.allowed_origins = vec!["https://app.example".parse().unwrap()];
    let server = Server::with(options).await;
    for (host, origin, expected) in [
        ("gate.example", "https://app.example", 200),
        ("gate.example:8080", "https://app.example:443", 200),
        ("gate.example", "http://app.example", 403),
        ("localhost", "https://app.example", 403),
    ] {
        let request = server
            .post(PING)
            .header("host", host)
            .header("origin", origin);
        assert_eq!(status(request).await, expected, "{host} {origin}");
    }
}

#[tokio::test]
async fn what_is_not_a_request_is_accepted_without_an_answer() {
    let server = Server::start().await;
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        let answer = server.post(body).send().await.unwrap();
        assert_eq!(answer.status(), 202, "{body}");
        assert!(answer.text().await.unwrap().is_empty(), "{body}");
    }
}

#[tokio::test]
async fn an_unknown_revision_is_refused_with_every_method_and_message() {
    let server = Server::start().await;
    let session = server.session().await;
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let message = |body: &str| server.post(body);
    for (what, request) in [
        ("request", message(PING)),
        ("notification", message(cancelled)),
        ("result", message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)),
        (
            "error",
            message(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#),
        ),
        (
            "GET",
            server
                .client
                .get(&server.url)
                .header("accept", "text/event-stream"),
        ),
        ("DELETE", server.client.delete(&server.url)),
    ] {
        let request = request.header("mcp-session-id", &session);
        for version in ["2031-01-01", "1999-01-01", "x", ""] {
            let request = request.try_clone().unwrap();
            let answer = request.header("mcp-protocol-version", version).send().await;
            let answer = answer.unwrap();
            assert_eq!(answer.status(), 400, "{what} {version:?}");
            assert_eq!(json(answer).await["error"]["code"], -32022, "{what}");
        }
        // it did nothing: the session is still there, and a revision that is known passes
        let known = request.header("mcp-protocol-version", "2025-06-18");
        let passed = status(known).await;
        assert!((200..300).contains(&passed), "{what} {passed}");
    }
}

#[tokio::test]
async fn there_are_no_more_sessions_than_allowed() {
    let mut options = HttpOptions::default();
    (options.max_sessions, options.session_idle) = (2, Duration::from_secs(60));
    let server = Server::with(options).await;
    let first = server.session().await;
    for session in [&first, &server.session().await] {
        let call = server.post(call("1", "large", ""));
        assert_eq!(status(call.header("mcp-session-id", session)).await, 200);
    }
    let refused = server.post(INITIALIZE).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let retry_after = refused.headers()["retry-after"].to_str().unwrap();
    assert!((1..=60).contains(&retry_after.parse::<u64>().unwrap()));
    assert_eq!(json(refused).await["error"]["data"]["kind"], "overloaded");
    let delete = server.client.delete(&server.url);
    assert_eq!(status(delete.header("mcp-session-id", first)).await, 204);
    server.session().await;
}
