//! Clients that send invalid requests, or try to use what belongs to other clients. Messages that
//! are refused for what they say are in `callward-mcp`, `tests/server/refusals.rs`.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Scene, tools};
use crate::scripted::Script;
use crate::support::{MODERN, said, within};

/// A name, the status of the only answer, and what one client sends.
type Row = (&'static str, u16, Vec<u8>);

/// The status of rows in which the tool runs, beside 200.
const RAN: u16 = 0;

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

/// Rows of one piece of text or bytes.
fn rows<T: Into<Vec<u8>>>(rows: impl IntoIterator<Item = (&'static str, u16, T)>) -> Vec<Row> {
    let rows = rows.into_iter();
    rows.map(|(row, status, sends)| (row, status, sends.into()))
        .collect()
}

fn no_http() -> Vec<Row> {
    let large = "x".repeat(1 << 20);
    rows([
        ("zeroes", 400, "\0".repeat(4096)),
        ("a TLS greeting", 400, "\x16\x03\x01\x02\0\x01\0\x01".into()),
        ("a JSON line", 400, "{\"jsonrpc\":\"2.0\"}\r\n\r\n".into()),
        ("no version", 400, "POST /mcp\r\n\r\n".into()),
        ("another version", 400, "POST /mcp HTTP/9.9\r\n\r\n".into()),
        ("no path", 400, "POST  HTTP/1.1\r\n\r\n".into()),
        ("a method of 1 MB", 431, large.clone()),
        ("a path of 1 MB", 431, format!("POST /{large}")),
        (
            "a header of 1 MB",
            431,
            format!("POST /mcp HTTP/1.1\r\nx: {large}"),
        ),
    ])
}

fn no_head() -> Vec<Row> {
    let body = call();
    let length = body.len();
    let with = |line: &str, body: &str| raw(&format!("{HOST}{TYPES}{CALL}{LAST}{line}\r\n"), body);
    let chunked = "transfer-encoding: chunked";
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let two = format!("content-length: {length}\r\ncontent-length: 1");
    let both = format!("{chunked}\r\ncontent-length: 4");
    let most = "content-length: 9223372036854775807";
    rows([
        ("1,000 headers", 431, raw(&"x: y\r\n".repeat(1000), "")),
        ("a header without a name", 400, raw(": x\r\n", "")),
        ("a header without a colon", 400, raw("x\r\n", "")),
        ("a zero in a header", 400, raw("x: a\0b\r\n", "")),
        ("a negative length", 400, with("content-length: -1", &body)),
        ("an invalid length", 400, with("content-length: 1e3", &body)),
        ("two lengths", 400, with(&two, &body)),
        ("a length of 2^63", 413, with(most, "")),
        (
            "an unknown coding",
            400,
            with("transfer-encoding: x", &body),
        ),
        ("an invalid chunk size", 400, with(chunked, "zz\r\n")),
        (
            "a chunk size of 2^64",
            400,
            with(chunked, "fffffffffffffffff\r\n"),
        ),
        // the length would make a second call of what follows the chunks
        ("a length and chunks", RAN, with(&both, &chunks)),
    ])
}

fn no_json() -> Vec<Row> {
    let text = call();
    let (start, end) = text.split_at(20);
    let arguments =
        |x: &str| text.replace(r#""arguments":{}"#, &format!(r#""arguments":{{"x":{x}}}"#));
    let nested = format!("{}{}", "[".repeat(1_200), "]".repeat(1_200));
    let invalid = [start.as_bytes(), b"\xff", end.as_bytes()].concat();
    let all = rows([
        ("whole", RAN, text.clone()),
        ("a byte order mark", 400, format!("\u{feff}{text}")),
        ("two messages", 400, text.repeat(2)),
        ("100,000 open lists", 400, "[".repeat(100_000)),
        // the message reports that the tool does not exist
        (
            "half a character in the name",
            200,
            text.replace("bad__pay", r"\ud800"),
        ),
        ("arguments of 1,200 levels", 200, arguments(&nested)),
        // it is passed on as it was written
        ("a number of any size", RAN, arguments("1e999999")),
        ("a body of 100 MB", 413, " ".repeat(100 << 20)),
    ]);
    let all = all.into_iter().chain([("invalid UTF-8", 400, invalid)]);
    all.map(|(row, status, body)| (row, status, post(CALL, body)))
        .collect()
}

fn forged() -> Vec<Row> {
    let text = call();
    let of = |headers: &str| post(&format!("{CALL}{headers}\r\n"), &text);
    let legacy = text.replace("io.modelcontextprotocol/protocolVersion", "x");
    let session = |headers: &str| post(headers, &legacy);
    let long = format!("mcp-session-id: {}\r\n", "x".repeat(10_000));
    let two = "mcp-session-id: a\r\nmcp-session-id: b\r\n";
    let other = |first: &str, more: &str| {
        format!("{first} HTTP/1.1\r\n{HOST}{LAST}{more}\r\n").into_bytes()
    };
    let above = other("POST /mcp/../api/calls", "content-length: 0\r\n");
    let trace = "traceparent: 00-x\r\nbaggage: ,,=;";
    let addresses = "x-forwarded-for: 10.0.0.1\r\nforwarded: for=x";
    rows([
        ("a session of 10 KB", 404, session(&long)),
        ("two sessions", 400, session(two)),
        ("no session", RAN, session("")),
        ("another path", 404, above),
        ("a tunnel", 404, other("CONNECT evil.example:443", "")),
        // what travels with a call and cannot be read is left out
        ("an invalid trace", RAN, of(trace)),
        ("others' addresses", RAN, of(addresses)),
    ])
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
    let scene = Scene::new(&server.server("bad"), "30s", "1MiB").await;
    let runs = async || {
        let answer = scene.gateway.mcp("bad__read", json!({})).await;
        let runs = said(&answer).trim_start_matches("run ");
        runs.parse::<u64>().unwrap()
    };
    let all = [no_http(), no_head(), no_json(), forged()];
    for (row, status, bytes) in all.into_iter().flatten() {
        let before = runs().await;
        let answered = sends(&scene, &bytes).await;
        let found = (&answered[..], runs().await - before - 1);
        let expected = match status {
            RAN => (&[200][..], 1),
            _ => (&[status][..], 0),
        };
        scene.holds(row, found == expected, &found);
        scene.bounded(row).await;
    }
    scene.ends("clients").await;
}
