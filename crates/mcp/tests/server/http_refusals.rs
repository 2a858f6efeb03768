//! What is refused before and in the legacy era, by table: status, code, id.

use callward_mcp::server::{HttpOptions, RUNTIME_ERROR};
use serde_json::{Value, json};

use crate::http::{Server, json};

/// What one raw POST is answered with: status, code, and whether the id is echoed.
pub(crate) struct Case {
    what: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: String,
    status: u16,
    code: i64,
    id: Value,
}

pub(crate) fn case(
    what: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: impl Into<String>,
    (status, code, id): (u16, i64, Value),
) -> Case {
    Case {
        what,
        headers,
        body: body.into(),
        status,
        code,
        id,
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
}

fn refused_before_the_body() -> Vec<Case> {
    vec![
        case(
            "host",
            &[("host", "evil.example")],
            PING,
            (403, -32600, Value::Null),
        ),
        case(
            "origin",
            &[("origin", "https://evil.example")],
            PING,
            (403, -32600, Value::Null),
        ),
        case(
            "no origin",
            &[("origin", "null")],
            PING,
            (403, -32600, Value::Null),
        ),
        case(
            "type",
            &[("content-type", "text/plain")],
            PING,
            (415, -32600, Value::Null),
        ),
        case(
            "accept",
            &[("accept", "text/html")],
            PING,
            (406, -32600, Value::Null),
        ),
        case("size", &[], " ".repeat(2_001), (413, -32600, Value::Null)),
    ]
}

fn refused_for_the_message() -> Vec<Case> {
    let batch = format!("[{PING}]");
    vec![
        case("syntax", &[], "{\"jsonrpc\"", (400, -32700, Value::Null)),
        case("nothing", &[], "", (400, -32700, Value::Null)),
        case("batch", &[], batch, (400, -32600, Value::Null)),
        case(
            "version",
            &[],
            r#"{"id":7,"method":"ping"}"#,
            (400, -32600, json!(7)),
        ),
        case(
            "null id",
            &[],
            PING.replace('7', "null"),
            (400, -32600, Value::Null),
        ),
        case(
            "twice",
            &[],
            request("tools/call", r#""name":"a","name":"b""#),
            (400, -32602, json!(7)),
        ),
    ]
}

fn refused_in_the_legacy_era() -> Vec<Case> {
    vec![
        case(
            "method",
            &[],
            request("prompts/get", ""),
            (200, -32601, json!(7)),
        ),
        case(
            "resources",
            &[],
            request("resources/read", ""),
            (200, -32601, json!(7)),
        ),
        case(
            "logging",
            &[],
            request("logging/setLevel", ""),
            (200, -32601, json!(7)),
        ),
        case(
            "completion",
            &[],
            request("completion/complete", ""),
            (200, -32601, json!(7)),
        ),
        case(
            "cursor",
            &[],
            request("tools/list", r#""cursor":"""#),
            (200, -32602, json!(7)),
        ),
        case(
            "name",
            &[],
            request("tools/call", r#""arguments":{}"#),
            (200, -32602, json!(7)),
        ),
        case(
            "arguments",
            &[],
            request("tools/call", r#""name":"echo","arguments":[]"#),
            (200, -32602, json!(7)),
        ),
        case(
            "tool",
            &[],
            request("tools/call", r#""name":"nope""#),
            (200, -32602, json!(7)),
        ),
        case(
            "initialize",
            &[],
            request("initialize", ""),
            (200, -32602, json!(7)),
        ),
        case(
            "session",
            &[("mcp-session-id", "00000000-0000-4000-8000-000000000000")],
            PING,
            (404, -32600, json!(7)),
        ),
        case(
            "no uuid",
            &[("mcp-session-id", "x")],
            PING,
            (404, -32600, json!(7)),
        ),
        case(
            "revision",
            &[("mcp-protocol-version", "2031-01-01")],
            PING,
            (400, -32022, json!(7)),
        ),
        case(
            "upstream",
            &[],
            request("tools/call", r#""name":"upstream""#),
            (200, -32050, json!(7)),
        ),
        case(
            "limited",
            &[],
            request("tools/call", r#""name":"limited""#),
            (200, RUNTIME_ERROR, json!(7)),
        ),
        case(
            "panics",
            &[],
            request("tools/call", r#""name":"panics""#),
            (200, RUNTIME_ERROR, json!(7)),
        ),
        case(
            "asks",
            &[],
            request("tools/call", r#""name":"asks""#),
            (200, RUNTIME_ERROR, json!(7)),
        ),
    ]
}

/// Sends each case and compares status, code and id.
pub(crate) async fn check(cases: Vec<Case>) {
    let server = Server::with(HttpOptions::default().with_max_body(2_000)).await;
    for case in cases {
        let mut request = server.client.post(&server.url).body(case.body);
        let defaults = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in defaults.iter().chain(case.headers) {
            let is_replaced = case.headers.iter().any(|(other, _)| other == name);
            if !is_replaced || case.headers.contains(&(name, value)) {
                request = request.header(*name, *value);
            }
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), case.status, "{}", case.what);
        let answer = json(answer).await;
        assert_eq!(
            answer["error"]["code"], case.code,
            "{}: {answer}",
            case.what
        );
        assert_eq!(answer["id"], case.id, "{}: {answer}", case.what);
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_refusal_before_the_message_has_its_status_and_no_id() {
    check(refused_before_the_body()).await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_its_status_and_code() {
    check(refused_for_the_message()).await;
}

#[tokio::test]
async fn a_legacy_refusal_is_a_matter_of_json_rpc() {
    check(refused_in_the_legacy_era()).await;
}
