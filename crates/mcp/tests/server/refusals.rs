//! What is refused over HTTP, by table, and what is accepted without an answer.

use reqwest::Method;

use crate::http::{INITIALIZED, META, PING, Server, ask, cancel};
use crate::http::{json, request, status};

/// Messages that are refused: `status code id | headers | message`. The headers are beside those of
/// every client; an empty one is not sent.
const MESSAGES: &str = r#"
403 -32600 - | host=evil.example                             | PING
403 -32600 - | origin=https://evil.example                   | PING
403 -32600 - | origin=null                                   | PING
415 -32600 - | content-type=text/plain                       | PING
406 -32600 - | accept=text/html                              | PING
413 -32600 - |                                               | LONG
400 -32700 - |                                               | {"jsonrpc"
400 -32700 - |                                               |
400 -32600 - |                                               | [PING]
400 -32600 - |                                               | {"jsonrpc":"2.0","id":null,"method":"ping"}
400 -32600 7 |                                               | {"id":7,"method":"ping"}
400 -32600 - |                                               | {"jsonrpc":"2.0","id":7,"error":5}
404 -32600 7 | mcp-session-id=00000000-0000-4000-8000-000000000000 | PING
404 -32600 7 | mcp-session-id=x                              | PING
400 -32022 7 | mcp-protocol-version=2031-01-01               | PING
"#;

/// Requests that are refused: `status code | method | params | headers`. The modern ones have their
/// headers; an empty one is not sent.
const REQUESTS: &str = r#"
400 -32602 | tools/call          | "name":"a","n\u0061me":"b" |
400 -32602 | tools/call          | "name":"echo","_meta":{"traceparent":"a","traceparent":"b"} | mcp-protocol-version= mcp-method=
400 -32602 | tools/call          | "name":"echo","_meta":1    | mcp-protocol-version= mcp-method=
200 -32602 | prompts/get         |                            |
200 -32601 | resources/read      |                            |
200 -32601 | logging/setLevel    |                            |
200 -32601 | completion/complete |                            |
200 -32602 | tools/list          | "cursor":"y"               |
200 -32602 | prompts/list        | "cursor":"x"               |
200 -32602 | tools/call          | "arguments":{}             |
200 -32602 | tools/call          | "name":"echo","arguments":[] |
200 -32602 | tools/call          | "name":"nope"              |
200 -32602 | initialize          |                            |
200 -32050 | tools/call          | "name":"upstream"          |
200 -33010 | tools/call          | "name":"limited"           |
200 -33010 | tools/call          | "name":"panics"            |
200 -33010 | tools/call          | "name":"asks"              |
404 -32601 | resources/subscribe | META                       |
404 -32601 | initialize          | "protocolVersion":"2025-11-25",META |
404 -32601 | ping                | META                       |
400 -32020 | tools/list          | META                       | mcp-protocol-version=
400 -32020 | tools/list          | META                       | mcp-protocol-version=2025-11-25
400 -32020 | tools/list          | META                       | mcp-method=
400 -32020 | tools/list          | META                       | mcp-method=tools/call
400 -32020 | tools/call          | "name":"echo",META         |
400 -32020 | tools/call          | "name":"odd",META          | mcp-name=echo
400 -32022 | tools/list          | FUTURE                     | mcp-protocol-version=2031-01-01
400 -32020 | tools/list          | FUTURE                     |
400 -32602 | tools/list          |                            | mcp-protocol-version=2026-07-28
400 -32602 | tools/list          | BARE                       |
400 -32602 | server/discover     |                            |
200 -32602 | tools/list          | "cursor":"x",META          |
200 -32602 | subscriptions/listen | META                      |
406 -32600 | subscriptions/listen | "notifications":{},META   | accept=application/json
"#;

async fn refused(server: &Server, expected: &str, body: &str, headers: &str, own: &[(&str, &str)]) {
    let mut all = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    all.extend(own);
    for header in headers.split_whitespace() {
        let (name, value) = header.split_once('=').unwrap();
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
    let mut post = server.request(Method::POST).body(body.to_owned());
    for (name, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
        post = post.header(name, value);
    }
    let answer = post.send().await.unwrap();
    let status = answer.status().as_u16();
    let answer = json(answer).await;
    let id = answer["id"].as_u64();
    let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    let found = format!("{status} {} {id}", answer["error"]["code"]);
    assert_eq!(found, expected, "{body} {headers}: {answer}");
    assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
}

fn columns<const N: usize>(row: &str) -> [&str; N] {
    let mut columns = row.split('|').map(str::trim);
    [(); N].map(|()| columns.next().unwrap_or_default())
}

#[tokio::test]
async fn each_refusal_has_its_status_its_code_and_the_id_that_was_sent() {
    let server = Server::with(|options| options.max_body = 2_000).await;
    let long = " ".repeat(2_001);
    for row in MESSAGES.trim().lines() {
        let [expected, headers, body] = columns(row);
        let body = body.replace("PING", PING).replace("LONG", &long);
        refused(&server, expected, &body, headers, &[]).await;
    }
    let future = META.replace("2026-07-28", "2031-01-01");
    let (version, _) = META.split_once(',').unwrap();
    for row in REQUESTS.trim().lines() {
        let [expected, method, params, headers] = columns(row);
        let params = params.replace("BARE", &format!("{version}}}"));
        let params = params.replace("META", META).replace("FUTURE", &future);
        let version = ("mcp-protocol-version", "2026-07-28");
        let modern = [version, ("mcp-method", method)];
        let own = if params.contains("_meta") {
            &modern[..]
        } else {
            &[]
        };
        let body = request(method, &params);
        refused(&server, &format!("{expected} 7"), &body, headers, own).await;
    }
}

#[tokio::test]
async fn a_large_message_is_read_as_a_small_one() {
    let server = Server::start().await;
    let filler = format!(r#""x":"{}""#, "y".repeat(300_000));
    let answer = ask(server.post(request("tools/list", &filler))).await;
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    let broken = request("tools/list", &filler).replace("}}", "}");
    assert_eq!(ask(server.post(broken)).await["error"]["code"], -32700);
}

#[tokio::test]
async fn get_and_delete_want_a_session_and_an_event_stream() {
    let server = Server::start().await;
    let session = server.session().await;
    for row in [
        "GET 400 | accept=text/event-stream",
        "GET 404 | accept=text/event-stream mcp-session-id=00000000-0000-4000-8000-000000000000",
        "GET 406 | accept=application/json mcp-session-id=KNOWN",
        "GET 405 | accept=*/* mcp-session-id=KNOWN mcp-protocol-version=2026-07-28",
        "DELETE 400 |",
        "DELETE 404 | mcp-session-id=00000000-0000-4000-8000-000000000000",
        "HEAD 405 | accept=text/event-stream mcp-session-id=KNOWN",
        "PUT 405 | mcp-session-id=KNOWN",
        // whatever the method, a host that is not allowed is refused first
        "PUT 403 | host=evil.example",
    ] {
        let [expected, headers] = columns(row);
        let (method, expected) = expected.split_once(' ').unwrap();
        let mut request = server.request(method.parse().unwrap());
        for header in headers.replace("KNOWN", &session).split_whitespace() {
            let (name, value) = header.split_once('=').unwrap();
            request = request.header(name, value);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16().to_string(), expected, "{row}");
        if expected == "405" {
            assert!(answer.headers()["allow"].to_str().unwrap().contains("POST"));
        }
        if expected == "406" {
            let advice = "Accept must list text/event-stream";
            assert_eq!(json(answer).await["error"]["message"], advice);
        }
    }
}

#[tokio::test]
async fn an_unknown_revision_is_refused_with_every_method_and_message() {
    let server = Server::start().await;
    let session = server.session().await;
    let in_session = |body: &str| server.post(body).header("mcp-session-id", &session);
    let delete = server.request(Method::DELETE);
    let unknown = r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#;
    // what is not a request is accepted without an answer
    for (request, expected) in [
        (in_session(PING), 200),
        (in_session(INITIALIZED), 202),
        (in_session(&cancel("1")), 202),
        (in_session(unknown), 202),
        (in_session(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), 202),
        (server.listen(&session), 200),
        (delete.header("mcp-session-id", &session), 204),
    ] {
        for version in ["2031-01-01", "1999-01-01", "x", ""] {
            let request = request.try_clone().unwrap();
            let answer = request.header("mcp-protocol-version", version).send().await;
            let answer = answer.unwrap();
            assert_eq!(answer.status(), 400, "{answer:?}");
            let error = json(answer).await["error"].take();
            assert_eq!(error["code"], -32022);
            assert_eq!(error["data"]["requested"], version);
            let supported = error["data"]["supported"].as_array().unwrap();
            assert!(supported.contains(&"2026-07-28".into()));
        }
        // it did nothing: the session is still there, and a revision that is known passes
        let known = request.header("mcp-protocol-version", "2025-06-18");
        assert_eq!(status(known).await, expected);
    }
}
