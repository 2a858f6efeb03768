//! The servers behind a gateway that are its children: this program, under other arguments.

use std::io::{BufRead, Write};
use std::sync::Arc;

use callward_testkit::hostile::{error, result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::channel::{Era, greeting};
use crate::http;
use crate::server::{text, tool};

/// Makes this program a server of notes.
pub(crate) const NOTES: &str = "--serve-notes";
/// Makes this program a relay to the server at the address that follows.
pub(crate) const RELAY: &str = "--relay";

/// Serves notes on standard input and output: a process remembers the last one it was given.
pub(crate) fn serve_notes() -> std::io::Result<()> {
    let mut note = "nothing".to_owned();
    let (first, greeting) = greeting(Era::Legacy);
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?).unwrap_or_default();
        let Some(id) = request.get("id") else {
            continue;
        };
        let params = &request["params"];
        let answer = match (request["method"].as_str(), params["name"].as_str()) {
            (Some("tools/call"), Some("keep")) => {
                let kept = params["arguments"]["note"].as_str();
                note = kept.unwrap_or_default().to_owned();
                text(id, "kept")
            }
            (Some("tools/call"), _) => text(id, &note),
            (Some("tools/list"), _) => {
                let tools = ["keep", "recall"].map(|name| tool("notes", name));
                result(id, &json!({"tools": tools}))
            }
            (Some("ping"), _) => result(id, &json!({})),
            (Some(method), _) if method == first => result(id, &greeting),
            _ => error(id, -32601, "no such method"),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// Passes each line to a server, and each answer back. Ends where that loses a call.
pub(crate) async fn relay(address: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    let session = Arc::new(Mutex::new(None));
    let mut passed = JoinSet::new();
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => {
                    let (address, session) = (address.to_owned(), session.clone());
                    passed.spawn(async move { pass(&address, &line, &session).await });
                }
                None => return Ok(()),
            },
            Some(answer) = passed.join_next() => match answer?? {
                Some(answer) => {
                    out.write_all(&answer).await?;
                    out.flush().await?;
                }
                None => return Ok(()),
            },
        }
    }
}

/// Returns the line that answers a line; an empty one if nothing does, `None` if the answer is
/// lost.
async fn pass(
    address: &str,
    line: &str,
    session: &Mutex<Option<String>>,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let known = session.lock().clone();
    let mut head = "POST /mcp HTTP/1.1\r\nhost: relay\r\n".to_owned();
    if let Some(known) = known {
        head += &format!("mcp-session-id: {known}\r\n");
    }
    http::write(&mut stream, &head, line).await?;
    let Some(mut heard) = http::read(&mut stream).await? else {
        return Ok(None);
    };
    if let Some(new) = heard.session {
        *session.lock() = Some(new);
    }
    if heard.first.contains(" 202 ") {
        return Ok(Some(Vec::new()));
    }
    heard.body.push(b'\n');
    Ok(heard.first.contains(" 200 ").then_some(heard.body))
}
