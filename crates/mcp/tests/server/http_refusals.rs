//! What is refused before and in the legacy era, by table: status, code, id.

use callward_mcp::server::HttpOptions;
use serde_json::{Value, json};

use crate::http::{Server, ask, json};

/// What one raw POST is answered with: status, code, and whether the id is echoed.
pub(crate) struct Case {
    what: String,
    headers: Vec<(String, String)>,
    body: String,
    status: u16,
    code: i64,
    id: Value,
}

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
}

fn without_id(what: &str, header: (&str, &str), body: &str, status: u16, code: i64) -> Case {
    Case {
        what: what.to_owned(),
        headers: vec![(header.0.to_owned(), header.1.to_owned())],
        body: body.to_owned(),
        status,
        code,
        id: Value::Null,
    }
}

/// Reads rows of `what | status | code | method | params | headers`. The headers are separated by
/// spaces and come after those given; an empty one is not sent.
pub(crate) fn table(rows: &str, headers: fn(&str) -> Vec<(&str, &str)>) -> Vec<Case> {
    let row = |row: &str| {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let [what, status, code, method, params, own] = columns[..] else {
            panic!("{row}");
        };
        let own = own
            .split_whitespace()
            .map(|own| own.split_once('=').unwrap());
        let mut headers = headers(method);
        for (name, value) in own {
            headers.retain(|(known, _)| *known != name);
            headers.push((name, value));
        }
        headers.retain(|(_, value)| !value.is_empty());
        let to_owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Case {
            what: what.to_owned(),
            headers: headers.into_iter().map(to_owned).collect(),
            body: request(method, params),
            status: status.parse().unwrap(),
            code: code.parse().unwrap(),
            id: json!(7),
        }
    };
    rows.trim().lines().map(row).collect()
}

fn refused_before_the_body() -> Vec<Case> {
    let large = " ".repeat(2_001);
    let foreign = ("origin", "https://evil.example");
    vec![
        without_id("host", ("host", "evil.example"), PING, 403, -32600),
        without_id("origin", foreign, PING, 403, -32600),
        without_id("no origin", ("origin", "null"), PING, 403, -32600),
        without_id("type", ("content-type", "text/plain"), PING, 415, -32600),
        without_id("accept", ("accept", "text/html"), PING, 406, -32600),
        without_id("size", NO_HEADER, &large, 413, -32600),
    ]
}

const NO_HEADER: (&str, &str) = ("x-none", "");

fn refused_for_the_message() -> Vec<Case> {
    let (batch, null) = (format!("[{PING}]"), PING.replace('7', "null"));
    let mut cases = vec![
        without_id("syntax", NO_HEADER, "{\"jsonrpc\"", 400, -32700),
        without_id("nothing", NO_HEADER, "", 400, -32700),
        without_id("batch", NO_HEADER, &batch, 400, -32600),
        without_id("null id", NO_HEADER, &null, 400, -32600),
    ];
    let unversioned = r#"{"id":7,"method":"ping"}"#;
    cases.push(Case {
        id: json!(7),
        ..without_id("version", NO_HEADER, unversioned, 400, -32600)
    });
    let twice = r#"twice | 400 | -32602 | tools/call | "name":"a","name":"b" |"#;
    cases.extend(table(twice, |_| Vec::new()));
    cases
}

const LEGACY: &str = r#"
method     | 200 | -32601 | prompts/get         | |
resources  | 200 | -32601 | resources/read      | |
logging    | 200 | -32601 | logging/setLevel    | |
completion | 200 | -32601 | completion/complete | |
cursor     | 200 | -32602 | tools/list | "cursor":"" |
name       | 200 | -32602 | tools/call | "arguments":{} |
arguments  | 200 | -32602 | tools/call | "name":"echo","arguments":[] |
tool       | 200 | -32602 | tools/call | "name":"nope" |
initialize | 200 | -32602 | initialize | |
session    | 404 | -32600 | ping | | mcp-session-id=00000000-0000-4000-8000-000000000000
no uuid    | 404 | -32600 | ping | | mcp-session-id=x
revision   | 400 | -32022 | ping | | mcp-protocol-version=2031-01-01
upstream   | 200 | -32050 | tools/call | "name":"upstream" |
limited    | 200 | -32010 | tools/call | "name":"limited"  |
panics     | 200 | -32010 | tools/call | "name":"panics"   |
asks       | 200 | -32010 | tools/call | "name":"asks"     |
"#;

/// Sends each case and compares status, code and id.
pub(crate) async fn check(cases: Vec<Case>) {
    let mut options = HttpOptions::default();
    options.max_body = 2_000;
    let server = Server::with(options).await;
    for case in cases {
        let mut request = server.client.post(&server.url).body(case.body);
        let defaults = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in defaults {
            if case.headers.iter().all(|(other, _)| other != name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in &case.headers {
            request = request.header(name, value);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), case.status, "{}", case.what);
        let answer = json(answer).await;
        let what = case.what;
        assert_eq!(answer["error"]["code"], case.code, "{what}: {answer}");
        assert_eq!(answer["id"], case.id, "{what}: {answer}");
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
    check(table(LEGACY, |_| Vec::new())).await;
}

#[tokio::test]
async fn a_large_message_is_read_as_a_small_one() {
    let server = Server::start().await;
    let filler = format!(r#""x":"{}""#, "y".repeat(300_000));
    let answer = ask(server.post(request("tools/list", &filler))).await;
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    let broken = request("tools/list", &filler).replace("}}", "}");
    let answer = ask(server.post(broken)).await;
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
}
