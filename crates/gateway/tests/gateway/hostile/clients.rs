//! Clients that send invalid requests, or try to use what belongs to other clients.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Scene, tools};
use crate::scripted::Script;
use crate::support::{MODERN, within};

/// What one client sends, and what becomes of it.
struct Row {
    row: &'static str,
    sends: Vec<u8>,
    /// The status of each answer before the connection ends.
    expected: &'static [u16],
    /// How often a tool runs.
    runs: u64,
}

fn row(row: &'static str, sends: impl Into<Vec<u8>>, expected: &'static [u16]) -> Row {
    Row {
        row,
        sends: sends.into(),
        expected,
        runs: 0,
    }
}

/// A call of the tool that is not safe to retry.
fn call() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "bad__pay", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

const HOST: &str = "host: 127.0.0.1\r\n";
const TYPES: &str =
    "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
/// The headers of such a call.
const CALL: &str =
    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: bad__pay\r\n";
const LAST: &str = "connection: close\r\n";

/// A head with these lines after the host and the types, and a body with its length.
fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let length = format!("content-length: {}\r\n", body.len());
    raw(&format!("{HOST}{TYPES}{LAST}{length}{headers}"), body)
}

fn raw(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST /mcp HTTP/1.1\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

fn no_http() -> Vec<Row> {
    let body = call().to_string();
    let body = body.as_bytes();
    let length = body.len();
    let head = format!("{HOST}{TYPES}{CALL}{LAST}");
    let chunked = format!("{head}transfer-encoding: chunked\r\n");
    let chunk = [format!("{length:x}\r\n").as_bytes(), body, b"\r\n"].concat();
    vec![
        row(
            "a TLS greeting",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            &[400],
        ),
        row("zeroes", vec![0; 4096], &[400]),
        row("a JSON line", b"{\"jsonrpc\":\"2.0\"}\r\n\r\n", &[400]),
        row("no version", b"POST /mcp\r\n\r\n", &[400]),
        row("another version", b"POST /mcp HTTP/9.9\r\n\r\n", &[400]),
        row("no path", b"POST  HTTP/1.1\r\n\r\n", &[400]),
        row("a method of 1 MB", vec![b'x'; 1 << 20], &[431]),
        row(
            "a path of 1 MB",
            [b"POST /", &vec![b'x'; 1 << 20][..]].concat(),
            &[431],
        ),
        row(
            "a header of 1 MB",
            [b"POST /mcp HTTP/1.1\r\nx: ", &vec![b'x'; 1 << 20][..]].concat(),
            &[431],
        ),
        row("1,000 headers", raw(&"x: y\r\n".repeat(1000), b""), &[431]),
        row("a header without a name", raw(": x\r\n", b""), &[400]),
        row("a header without a colon", raw("x\r\n", b""), &[400]),
        row("a zero in a header", raw("x: a\0b\r\n", b""), &[400]),
        row(
            "a negative length",
            raw(&format!("{head}content-length: -1\r\n"), body),
            &[400],
        ),
        row(
            "an invalid length",
            raw(&format!("{head}content-length: 1e3\r\n"), body),
            &[400],
        ),
        row(
            "two lengths",
            raw(
                &format!("{head}content-length: {length}\r\ncontent-length: 1\r\n"),
                body,
            ),
            &[400],
        ),
        row(
            "a length of 2^64",
            raw(
                &format!("{head}content-length: 18446744073709551616\r\n"),
                body,
            ),
            &[400],
        ),
        row(
            "a length of 2^63",
            raw(
                &format!("{head}content-length: 9223372036854775807\r\n"),
                b"",
            ),
            &[413],
        ),
        row(
            "a coding that is unknown",
            raw(&format!("{head}transfer-encoding: x\r\n"), body),
            &[400],
        ),
        row("an invalid chunk size", raw(&chunked, b"zz\r\n"), &[400]),
        row(
            "a chunk size of 2^64",
            raw(&chunked, b"fffffffffffffffff\r\n"),
            &[400],
        ),
        // the length would make a second call of what follows the chunks
        Row {
            runs: 1,
            ..row(
                "a length and chunks",
                raw(
                    &format!("{chunked}content-length: 4\r\n"),
                    &[&chunk[..], b"0\r\n\r\n"].concat(),
                ),
                &[200],
            )
        },
    ]
}

fn no_json() -> Vec<Row> {
    let text = call().to_string();
    let of = |name, body: &[u8]| row(name, post(CALL, body), &[400]);
    let deep = "[".repeat(100_000);
    let nested = format!("{}{}", "[".repeat(1_200), "]".repeat(1_200));
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
            &[&text.as_bytes()[..20], b"\xff", &text.as_bytes()[20..]].concat(),
        ),
        of("two messages", text.repeat(2).as_bytes()),
        of("a batch", format!("[{text},{text}]").as_bytes()),
        of("100,000 open lists", deep.as_bytes()),
        of(
            "an id that is an object",
            text.replace("\"id\":1", "\"id\":{}").as_bytes(),
        ),
        of(
            "two methods",
            text.replace("\"id\":1", "\"id\":1,\"method\":\"x\"")
                .as_bytes(),
        ),
        of(
            "two tools",
            text.replace("\"name\":\"bad", "\"name\":\"x\",\"name\":\"bad")
                .as_bytes(),
        ),
        // it is reported as a message: there is no such tool
        row(
            "half a character in the name",
            post(CALL, text.replace("bad__pay", r"\ud800").as_bytes()),
            &[200],
        ),
        row(
            "a body of 100 MB",
            post(CALL, &vec![b' '; 100 << 20]),
            &[413],
        ),
        row(
            "arguments that nest 1,200 levels",
            post(
                CALL,
                text.replace(
                    "\"arguments\":{}",
                    &format!("\"arguments\":{{\"x\":{nested}}}"),
                )
                .as_bytes(),
            ),
            &[200],
        ),
        // it is passed on as it was written
        Row {
            runs: 1,
            ..row(
                "a number of any size",
                post(
                    CALL,
                    text.replace("\"arguments\":{}", "\"arguments\":{\"x\":1e999999}")
                        .as_bytes(),
                ),
                &[200],
            )
        },
    ]
}

fn forged() -> Vec<Row> {
    let text = call().to_string();
    let body = text.as_bytes();
    let of = |name, headers: &str, expected| {
        row(name, post(&format!("{CALL}{headers}"), body), expected)
    };
    let legacy = text.replace("io.modelcontextprotocol/protocolVersion", "x");
    let session =
        |name, headers: &str, expected| row(name, post(headers, legacy.as_bytes()), expected);
    vec![
        of("an invalid origin", "origin: null\r\n", &[403]),
        of("another method", "mcp-method: tools/list\r\n", &[400]),
        of("another tool", "mcp-name: good__ask\r\n", &[400]),
        of(
            "another version",
            "mcp-protocol-version: 2025-11-25\r\n",
            &[400],
        ),
        session("an unknown session", "mcp-session-id: unknown\r\n", &[404]),
        session(
            "a session of 10 KB",
            &format!("mcp-session-id: {}\r\n", "x".repeat(10_000)),
            &[404],
        ),
        session(
            "two sessions",
            "mcp-session-id: a\r\nmcp-session-id: b\r\n",
            &[400],
        ),
        Row {
            runs: 1,
            ..session("no session", "", &[200])
        },
        row(
            "the end of an unknown session",
            format!("DELETE /mcp HTTP/1.1\r\n{HOST}{LAST}mcp-session-id: x\r\n\r\n"),
            &[404],
        ),
        row(
            "another path",
            format!("POST /mcp/../api/calls HTTP/1.1\r\n{HOST}{LAST}content-length: 0\r\n\r\n"),
            &[404],
        ),
        row(
            "a tunnel",
            format!("CONNECT evil.example:443 HTTP/1.1\r\n{HOST}{LAST}\r\n"),
            &[404],
        ),
        // what travels with a call and cannot be read is left out
        Row {
            runs: 1,
            ..of(
                "an invalid trace",
                "traceparent: 00-x\r\nbaggage: ,,=;\r\n",
                &[200],
            )
        },
        Row {
            runs: 1,
            ..of(
                "others' addresses",
                "x-forwarded-for: 10.0.0.1\r\nforwarded: for=x\r\n",
                &[200],
            )
        },
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
    let ran = async || {
        let answer = scene.gateway.mcp("bad__read", json!({})).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        text.trim_start_matches("run ").parse::<u64>().unwrap()
    };
    let whole = Row {
        runs: 1,
        ..row("whole", post(CALL, call().to_string().as_bytes()), &[200])
    };
    let rows = [vec![whole], no_http(), no_json(), forged()];
    for Row {
        row,
        sends: bytes,
        expected,
        runs,
    } in rows.into_iter().flatten()
    {
        let before = ran().await;
        let answered = sends(&scene, &bytes).await;
        let found = (&answered[..], ran().await - before - 1);
        scene.holds(row, found == (expected, runs), &found);
        scene.bounded(row);
        scene.neighbour(row).await;
    }
    scene.ends("clients").await;
}
