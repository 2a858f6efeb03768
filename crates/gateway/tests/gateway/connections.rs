//! Clients that hold connections without using them.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Gateway, until, within};

const CONFIG: &str = "[http]\nmax_connections = 8\nmax_connections_per_address = 6\n\
    [servers.orders]\ncommand = \"TOLLGATE\"\nargs = [\"sample\"]\n";

const CONTINUE: &[u8; 25] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Connects, and sends this much of a request.
async fn connected(gateway: &Gateway, begun: &[u8]) -> TcpStream {
    let address = gateway.url.trim_start_matches("http://");
    let address = address.trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(begun).await; // it may be closed already
    stream
}

#[tokio::test]
async fn half_sent_headers_keep_no_client_out() {
    let gateway = Gateway::configured(CONFIG).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(connected(&gateway, b"POST /mcp HTTP/1.1\r\nhost: 127").await);
        let answer = gateway
            .mcp("orders__get_order", json!({"order_id": 1}))
            .await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let mut first = held.remove(0);
    let closed = until("the first one is closed", || {
        let read = first.try_read(&mut [0; 512]);
        async move {
            match read {
                Ok(0) => Some(true),
                Ok(_) => Some(false),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
                Err(_) => Some(true),
            }
        }
    })
    .await;
    assert!(closed, "it was answered");
    let _ = first.shutdown().await;
    gateway.stopped().await;
}

#[tokio::test]
async fn a_connection_with_a_request_in_work_is_not_ended_for_another() {
    let gateway = Gateway::configured(CONFIG).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).to_string();
    let half = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n{}",
        body.len(),
        &body[..10]
    );
    let mut busy = Vec::new();
    for _ in 0..6 {
        let mut stream = connected(&gateway, half.as_bytes()).await;
        let mut told = [0; CONTINUE.len()];
        stream.read_exact(&mut told).await.unwrap();
        assert_eq!(&told, CONTINUE, "its body is read");
        busy.push(stream);
    }
    let mut refused = connected(&gateway, b"").await;
    let read = within("the refusal", refused.read(&mut [0; 16])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    for mut stream in busy {
        stream.write_all(&body.as_bytes()[10..]).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert!(head.starts_with(b"HTTP/1.1 "), "{head:?}");
    }
    gateway.stopped().await;
}
