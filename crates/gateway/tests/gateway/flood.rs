//! A server that makes requests as fast as it can, and takes no reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::legacy::Legacy;
use crate::scripted::Script;
use crate::support::{Gateway, until};

/// How many requests there are in one stretch of the flood.
const STRETCH: usize = 500;

/// What the server has seen.
#[derive(Debug, Default)]
struct Seen {
    open: AtomicUsize,
    most_open: AtomicUsize,
    written: AtomicUsize,
}

/// Reads the head and the body of one request; nothing at the end of the connection.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    stream.read_line(&mut first).await.ok()?;
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let head = line.to_ascii_lowercase();
        if let Some(said) = head.strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        if head == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((first, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Answers like a legacy server, but floods its streams, and reads replies without answering them.
async fn serve(stream: TcpStream, seen: &Seen) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (first, message) = request(&mut stream).await?;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}}, "serverInfo": {"name": "flood", "version": "1"}}),
            Some("tools/list") => json!({"tools": [{"name": "x",
                "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}),
            Some("notifications/initialized") => {
                let taken = b"HTTP/1.1 202 x\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(taken).await.ok()?;
                continue;
            }
            Some("server/discover") => {
                let refused = b"HTTP/1.1 400 x\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(refused).await.ok()?;
                continue;
            }
            Some("tools/call") => return flood(stream, seen).await,
            None if first.starts_with("GET ") => return flood(stream, seen).await,
            // a reply: unanswered until the gateway closes the connection
            _ => {
                return tokio::io::copy(&mut stream, &mut tokio::io::sink())
                    .await
                    .ok()
                    .map(drop);
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let head = format!(
            "HTTP/1.1 200 x\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.ok()?;
    }
}

async fn flood(mut stream: BufReader<TcpStream>, seen: &Seen) -> Option<()> {
    let head = b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(head).await.ok()?;
    let event = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    let stretch = format!("data: {event}\n\n").repeat(STRETCH);
    loop {
        stream.write_all(stretch.as_bytes()).await.ok()?;
        seen.written.fetch_add(STRETCH, Ordering::Relaxed);
    }
}

/// Starts the server; returns its address and what it sees.
async fn flooding() -> (String, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::<Seen>::default();
    let reported = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = reported.clone();
            tokio::spawn(async move {
                let open = seen.open.fetch_add(1, Ordering::Relaxed) + 1;
                seen.most_open.fetch_max(open, Ordering::Relaxed);
                serve(stream, &seen).await;
                seen.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    (url, seen)
}

pub(crate) fn descriptors(gateway: &Gateway) -> usize {
    let process = gateway.child.id().unwrap();
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_flood_of_requests_harms_no_neighbour_and_no_stop() {
    let (url, seen) = flooding().await;
    let counter = Script::counting(&json!([{"name": "add", "inputSchema": {"type": "object"}}]));
    let servers = counter.server("counter");
    let config = format!("[servers.flood]\nurl = {url:?}\n\n{servers}\n[http]\ndrain = \"1s\"\n");
    let gateway = Gateway::configured(&config).await;
    let client = Arc::new(Legacy::open(&gateway.url).await);
    let before = descriptors(&gateway);
    let flooded = tokio::spawn({
        let client = client.clone();
        async move { client.call("flood__x", json!({})).await }
    });
    until("the flood", || async {
        (seen.written.load(Ordering::Relaxed) > 40 * STRETCH).then_some(())
    })
    .await;
    for run in 1..=20 {
        let reported = client.call("counter__add", json!({})).await;
        assert_eq!(reported, format!("run {run}"));
    }
    let most = seen.most_open.load(Ordering::Relaxed);
    assert!(most <= 40, "{most} connections");
    let more = descriptors(&gateway).saturating_sub(before);
    assert!(more <= 60, "{more} more descriptors");
    gateway.stopped().await;
    flooded.abort();
}
