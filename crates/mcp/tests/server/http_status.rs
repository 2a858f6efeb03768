//! What is refused in the modern era, and what the other methods answer.

use std::time::Duration;

use callward_mcp::server::HttpOptions;
use serde_json::json;

use crate::http::{INITIALIZE, META, Server, json};
use crate::http_refusals::{Case, case, check, request};

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
const MODERN: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28")];
const LISTING: &[(&str, &str)] = &[
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/list"),
];
const CALLING: &[(&str, &str)] = &[
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

fn refused_in_the_modern_era() -> Vec<Case> {
    let future = META.replace("2026-07-28", "2031-01-01");
    let bare = META
        .split_once(',')
        .map(|(version, _)| format!("{version}}}"))
        .unwrap();
    vec![
        case(
            "method",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "resources/subscribe"),
            ],
            request("resources/subscribe", META),
            (404, -32601, json!(7)),
        ),
        case(
            "initialize",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "initialize"),
            ],
            request(
                "initialize",
                &format!(r#""protocolVersion":"2025-11-25",{META}"#),
            ),
            (404, -32601, json!(7)),
        ),
        case(
            "ping",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "ping"),
            ],
            request("ping", META),
            (404, -32601, json!(7)),
        ),
        case(
            "no version header",
            &[("mcp-method", "tools/list")],
            request("tools/list", META),
            (400, -32020, json!(7)),
        ),
        case(
            "other version",
            &[
                ("mcp-protocol-version", "2025-11-25"),
                ("mcp-method", "tools/list"),
            ],
            request("tools/list", META),
            (400, -32020, json!(7)),
        ),
        case(
            "no method header",
            MODERN,
            request("tools/list", META),
            (400, -32020, json!(7)),
        ),
        case(
            "other method",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
            ],
            request("tools/list", META),
            (400, -32020, json!(7)),
        ),
        case(
            "no name header",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
            ],
            request("tools/call", &format!(r#""name":"echo",{META}"#)),
            (400, -32020, json!(7)),
        ),
        case(
            "other name",
            CALLING,
            request("tools/call", &format!(r#""name":"odd",{META}"#)),
            (400, -32020, json!(7)),
        ),
        case(
            "revision",
            &[
                ("mcp-protocol-version", "2031-01-01"),
                ("mcp-method", "tools/list"),
            ],
            request("tools/list", &future),
            (400, -32022, json!(7)),
        ),
        case(
            "no metadata",
            LISTING,
            request("tools/list", ""),
            (400, -32602, json!(7)),
        ),
        case(
            "no capabilities",
            LISTING,
            request("tools/list", &bare),
            (400, -32602, json!(7)),
        ),
        case(
            "discover without metadata",
            &[],
            request("server/discover", ""),
            (400, -32602, json!(7)),
        ),
        case(
            "cursor",
            LISTING,
            request("tools/list", &format!(r#""cursor":"x",{META}"#)),
            (200, -32602, json!(7)),
        ),
        case(
            "listen to what",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "subscriptions/listen"),
            ],
            request("subscriptions/listen", META),
            (200, -32602, json!(7)),
        ),
        case(
            "listen without events",
            &[
                ("accept", "application/json"),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "subscriptions/listen"),
            ],
            request(
                "subscriptions/listen",
                &format!(r#""notifications":{{}},{META}"#),
            ),
            (406, -32600, json!(7)),
        ),
    ]
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
    let answer = json(answer.send().await.unwrap()).await;
    let data = &answer["error"]["data"];
    assert_eq!(data["requested"], "2031-01-01");
    assert!(
        data["supported"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28"))
    );
}

#[tokio::test]
async fn get_and_delete_want_a_session_and_an_event_stream() {
    let server = Server::start().await;
    let session = server.session().await;
    let unknown = "00000000-0000-4000-8000-000000000000".to_owned();
    let cases = [
        (
            "no session",
            reqwest::Method::GET,
            "text/event-stream",
            None,
            None,
            400,
        ),
        (
            "unknown",
            reqwest::Method::GET,
            "text/event-stream",
            Some(&unknown),
            None,
            404,
        ),
        (
            "accept",
            reqwest::Method::GET,
            "application/json",
            Some(&session),
            None,
            406,
        ),
        (
            "modern",
            reqwest::Method::GET,
            "text/event-stream",
            Some(&session),
            Some("2026-07-28"),
            405,
        ),
        (
            "no session",
            reqwest::Method::DELETE,
            "*/*",
            None,
            None,
            400,
        ),
        (
            "unknown",
            reqwest::Method::DELETE,
            "*/*",
            Some(&unknown),
            None,
            404,
        ),
        (
            "head",
            reqwest::Method::HEAD,
            "text/event-stream",
            Some(&session),
            None,
            405,
        ),
        (
            "put",
            reqwest::Method::PUT,
            "*/*",
            Some(&session),
            None,
            405,
        ),
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
    for method in [reqwest::Method::HEAD, reqwest::Method::PUT] {
        let request = server.client.request(method, &server.url);
        let answer = request.header("host", "evil.example").send().await;
        assert_eq!(answer.unwrap().status(), 403);
    }
}

#[tokio::test]
async fn origins_and_hosts_that_are_listed_pass() {
    let options = HttpOptions::default()
        .with_allowed_hosts(["gate.example".parse().unwrap()])
        .with_allowed_origins(["https://app.example".parse().unwrap()]);
    let server = Server::with(options).await;
    for (host, origin, status) in [
        ("gate.example", "https://app.example", 200),
        ("gate.example:8080", "https://app.example:443", 200),
        ("gate.example", "http://app.example", 403),
        ("localhost", "https://app.example", 403),
    ] {
        let request = server
            .post(PING)
            .header("host", host)
            .header("origin", origin);
        assert_eq!(
            request.send().await.unwrap().status(),
            status,
            "{host} {origin}"
        );
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
            let answer = request.header("mcp-protocol-version", version);
            let answer = answer.send().await.unwrap();
            assert_eq!(answer.status(), 400, "{what} {version:?}");
            let code = json(answer).await["error"]["code"].clone();
            assert_eq!(code, -32022, "{what} {version:?}");
        }
        // it did nothing: the session is still there, and a revision that is known passes
        let known = request.header("mcp-protocol-version", "2025-06-18");
        let status = known.send().await.unwrap().status();
        assert!(status.is_success(), "{what} {status}");
    }
}

#[tokio::test]
async fn there_are_no_more_sessions_than_allowed() {
    let options = HttpOptions::default().with_sessions(2, Duration::from_secs(60));
    let server = Server::with(options).await;
    let first = server.session().await;
    for session in [&first, &server.session().await] {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}"#;
        let call = server.post(call).header("mcp-session-id", session);
        assert_eq!(call.send().await.unwrap().status(), 200);
    }
    let refused = server.post(INITIALIZE).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let retry_after = refused.headers()["retry-after"].to_str().unwrap();
    assert!((1..=60).contains(&retry_after.parse::<u64>().unwrap()));
    assert_eq!(json(refused).await["error"]["data"]["kind"], "overloaded");
    let delete = server
        .client
        .delete(&server.url)
        .header("mcp-session-id", first);
    assert_eq!(delete.send().await.unwrap().status(), 204);
    server.session().await;
}
