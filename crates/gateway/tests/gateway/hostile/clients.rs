//! Clients that send invalid requests, or try to use what belongs to other clients.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Scene, tools};
use crate::scripted::Script;
use crate::support::{MODERN, within};

/// What one client sends, and how often a tool runs.
struct Row {
    row: &'static str,
    sends: Vec<u8>,
    /// The status of the only answer.
    status: u16,
    runs: u64,
}

fn row(row: &'static str, status: u16, sends: impl Into<Vec<u8>>) -> Row {
    Row {
        row,
        sends: sends.into(),
        status,
        runs: 0,
    }
}

/// A row that runs the tool.
fn ran(name: &'static str, sends: impl Into<Vec<u8>>) -> Row {
    Row {
        runs: 1,
        ..row(name, 200, sends)
    }
}

/// A call of the tool that is not safe to retry.
fn call() -> String {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "bad__pay", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    call.to_string()
}

const HOST: &str = "host: 127.0.0.1\r\n";
const TYPES: &str =
    "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
/// The headers of such a call.
const CALL: &str =
    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: bad__pay\r\n";
const LAST: &str = "connection: close\r\n";

/// A head with these lines after the host and the types, and a body with its length.
fn post(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = format!("content-length: {}\r\n", body.as_ref().len());
    raw(&format!("{HOST}{TYPES}{LAST}{length}{headers}"), body)
}

fn raw(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("POST /mcp HTTP/1.1\r\n{headers}\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}

fn no_http() -> Vec<Row> {
    let body = call();
    let length = body.len();
    let head = format!("{HOST}{TYPES}{CALL}{LAST}");
    let with = |line: &str, body: &str| raw(&format!("{head}{line}\r\n"), body);
    let of = |name, line: &str| row(name, 400, with(line, &body));
    let chunked = "transfer-encoding: chunked";
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let two = format!("content-length: {length}\r\ncontent-length: 1");
    let both = format!("{chunked}\r\ncontent-length: 4");
    let large = "x".repeat(1 << 20);
    vec![
        row(
            "a TLS greeting",
            400,
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        ),
        row("zeroes", 400, vec![0; 4096]),
        row("a JSON line", 400, "{\"jsonrpc\":\"2.0\"}\r\n\r\n"),
        row("no version", 400, "POST /mcp\r\n\r\n"),
        row("another version", 400, "POST /mcp HTTP/9.9\r\n\r\n"),
        row("no path", 400, "POST  HTTP/1.1\r\n\r\n"),
        row("a method of 1 MB", 431, large.clone()),
        row("a path of 1 MB", 431, format!("POST /{large}")),
        row(
            "a header of 1 MB",
            431,
            format!("POST /mcp HTTP/1.1\r\nx: {large}"),
        ),
        row("1,000 headers", 431, raw(&"x: y\r\n".repeat(1000), "")),
        row("a header without a name", 400, raw(": x\r\n", "")),
        row("a header without a colon", 400, raw("x\r\n", "")),
        row("a zero in a header", 400, raw("x: a\0b\r\n", "")),
        of("a negative length", "content-length: -1"),
        of("an invalid length", "content-length: 1e3"),
        of("two lengths", &two),
        of("a length of 2^64", "content-length: 18446744073709551616"),
        row(
            "a length of 2^63",
            413,
            with("content-length: 9223372036854775807", ""),
        ),
        of("a coding that is unknown", "transfer-encoding: x"),
        row("an invalid chunk size", 400, with(chunked, "zz\r\n")),
        row(
            "a chunk size of 2^64",
            400,
            with(chunked, "fffffffffffffffff\r\n"),
        ),
        // the length would make a second call of what follows the chunks
        ran("a length and chunks", with(&both, &chunks)),
    ]
}

fn no_json() -> Vec<Row> {
    let text = call();
    let (start, end) = text.split_at(20);
    let of = |name, body: &[u8]| row(name, 400, post(CALL, body));
    let with = |name, from: &str, to: &str| of(name, text.replace(from, to).as_bytes());
    let arguments =
        |x: &str| text.replace(r#""arguments":{}"#, &format!(r#""arguments":{{"x":{x}}}"#));
    let deep = "[".repeat(100_000);
    let nested = format!("{}{}", "[".repeat(1_200), "]".repeat(1_200));
    let half = text.replace("bad__pay", r"\ud800");
    vec![
        of("no body", b""),
        of("white space", b"  \r\n "),
        of("null", b"null"),
        of("a list", b"[]"),
        of("no message", b"{}"),
        of("an open object", b"{"),
        of("no JSON", b"nonsense"),
        of("a byte order mark", format!("\u{feff}{text}").as_bytes()),
        of(
            "invalid UTF-8",
            &[start.as_bytes(), b"\xff", end.as_bytes()].concat(),
        ),
        of("two messages", text.repeat(2).as_bytes()),
        of("a batch", format!("[{text},{text}]").as_bytes()),
        of("100,000 open lists", deep.as_bytes()),
        with("an id that is an object", r#""id":1"#, r#""id":{}"#),
        with("two methods", r#""id":1"#, r#""id":1,"method":"x""#),
        with("two tools", r#""name":"bad"#, r#""name":"x","name":"bad"#),
        // the message reports that the tool does not exist
        row("half a character in the name", 200, post(CALL, half)),
        row("a body of 100 MB", 413, post(CALL, vec![b' '; 100 << 20])),
        row(
            "arguments that nest 1,200 levels",
            200,
            post(CALL, arguments(&nested)),
        ),
        // it is passed on as it was written
        ran("a number of any size", post(CALL, arguments("1e999999"))),
    ]
}

fn forged() -> Vec<Row> {
    let text = call();
    let of = |headers: &str| post(&format!("{CALL}{headers}\r\n"), &text);
    let legacy = text.replace("io.modelcontextprotocol/protocolVersion", "x");
    let session = |headers: &str| post(headers, &legacy);
    let long = format!("mcp-session-id: {}\r\n", "x".repeat(10_000));
    let other = |first: &str, more: &str| format!("{first} HTTP/1.1\r\n{HOST}{LAST}{more}\r\n");
    vec![
        row("an invalid origin", 403, of("origin: null")),
        row("another method", 400, of("mcp-method: tools/list")),
        row("another tool", 400, of("mcp-name: good__ask")),
        row(
            "another version",
            400,
            of("mcp-protocol-version: 2025-11-25"),
        ),
        row(
            "an unknown session",
            404,
            session("mcp-session-id: unknown\r\n"),
        ),
        row("a session of 10 KB", 404, session(&long)),
        row(
            "two sessions",
            400,
            session("mcp-session-id: a\r\nmcp-session-id: b\r\n"),
        ),
        ran("no session", session("")),
        row(
            "the end of an unknown session",
            404,
            other("DELETE /mcp", "mcp-session-id: x\r\n"),
        ),
        row(
            "another path",
            404,
            other("POST /mcp/../api/calls", "content-length: 0\r\n"),
        ),
        row("a tunnel", 404, other("CONNECT evil.example:443", "")),
        // what travels with a call and cannot be read is left out
        ran("an invalid trace", of("traceparent: 00-x\r\nbaggage: ,,=;")),
        ran(
            "others' addresses",
            of("x-forwarded-for: 10.0.0.1\r\nforwarded: for=x"),
        ),
    ]
}

/// Sends this, and returns the status of each answer.
async fn sends(scene: &Scene, bytes: &[u8]) -> Vec<u16> {
    let address = scene.gateway.url.trim_start_matches("http://");
    let address = address.trim_end_matches("/mcp");
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut reads, mut writes) = stream.into_split();
    let mut answer = Vec::new();
    // it may be refused before it is all read, and its connection reset
    let read = async { reads.read_to_end(&mut answer).await.is_ok() };
    let write = async { writes.write_all(bytes).await.is_ok() };
    within("the end of the connection", async {
        tokio::join!(read, write)
    })
    .await;
    let answer = String::from_utf8_lossy(&answer);
    let heads = answer.split("HTTP/1.1 ").skip(1);
    heads
        .filter_map(|head| head.get(..3)?.parse().ok())
        .collect()
}

#[tokio::test]
async fn a_client_that_sends_anything_runs_nothing_and_holds_nothing() {
    let server = Script::counting(&Value::from(tools().to_vec()));
    let scene = Scene::new(&server.server("bad"), "30s").await;
    let runs = async || {
        let answer = scene.gateway.mcp("bad__read", json!({})).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        text.trim_start_matches("run ").parse::<u64>().unwrap()
    };
    let rows = [
        vec![ran("whole", post(CALL, call()))],
        no_http(),
        no_json(),
        forged(),
    ];
    for one in rows.into_iter().flatten() {
        let before = runs().await;
        let answered = sends(&scene, &one.sends).await;
        let found = (&answered[..], runs().await - before - 1);
        let row = one.row;
        scene.holds(row, found == (&[one.status], one.runs), &found);
        scene.bounded(row);
        scene.neighbour(row).await;
    }
    scene.ends("clients").await;
}
