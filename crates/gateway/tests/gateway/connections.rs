//! Clients that hold connections without using them.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::flood::descriptors;
use crate::scripted::Script;
use crate::support::{Gateway, http, message, until, within};

const ORDERS: &str = "[servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n";

/// A gateway with these keys of `[http]`.
async fn gateway(http: &str) -> Gateway {
    Gateway::configured(&format!("[http]\n{http}\n{ORDERS}")).await
}

const FEW: &str = "max_connections = 8\nmax_connections_per_address = 6";

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
    let gateway = gateway(FEW).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(connected(&gateway, b"POST /mcp HTTP/1.1\r\nhost: 127").await);
        let answer = gateway.order(1).await;
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
async fn half_sent_bodies_keep_no_client_out() {
    let gateway = gateway(FEW).await;
    let mut held = Vec::new();
    for _ in 0..30 {
        held.push(connected(&gateway, &large_body(100, 50)).await);
        let answer = gateway.order(1).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    gateway.stopped().await;
}

#[tokio::test]
async fn a_connection_with_a_request_in_work_is_not_ended_for_another() {
    let gateway = gateway(FEW).await;
    let mut busy = Vec::new();
    for region in 0..6 {
        // not the same call, of which one would run
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "orders__sales_report",
            "arguments": {"region": region.to_string(), "delay_ms": 3_000},
        }});
        let body = body.to_string();
        let call = head("", body.len()) + &body;
        busy.push(connected(&gateway, call.as_bytes()).await);
    }
    gateway.running("orders", 6).await;
    let mut refused = connected(&gateway, b"").await;
    let read = within("the refusal", refused.read(&mut [0; 16])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    for mut stream in busy {
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
    }
    gateway.stopped().await;
}

/// A call whose body has this many bytes, of which this many are sent.
fn large_body(bytes: usize, sent: usize) -> Vec<u8> {
    [head("", bytes).into_bytes(), vec![b' '; sent]].concat()
}

fn head(more: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n{more}content-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n"
    )
}

#[tokio::test]
async fn large_bodies_that_come_slowly_keep_no_small_one_out() {
    const LARGE: usize = 3 << 20;
    let gateway = gateway("max_bodies = \"4MiB\"").await;
    // the last byte of neither comes, and there is space for one
    let mut slow = [
        connected(&gateway, &large_body(LARGE, LARGE - 1)).await,
        connected(&gateway, &large_body(LARGE, LARGE - 1)).await,
    ];
    let [one, other] = &mut slow;
    let (mut first, mut second) = ([0; 512], [0; 512]);
    let refused = within("a refusal", async {
        tokio::select! {
            read = one.read(&mut first) => first[..read.unwrap()].to_vec(),
            read = other.read(&mut second) => second[..read.unwrap()].to_vec(),
        }
    })
    .await;
    let refused = String::from_utf8_lossy(&refused).to_lowercase();
    assert!(refused.starts_with("http/1.1 503 "), "{refused}");
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    let answer = gateway.order(1).await;
    assert!(answer["result"].is_object(), "{answer}");
    gateway.stopped().await;
}

#[tokio::test]
async fn clients_that_read_no_answers_are_closed_where_too_much_waits() {
    const LARGE: usize = 12 << 20;
    let script = Script {
        call: "says \"$(head -c 12582912 /dev/zero | tr '\\0' x)\"",
        ..Script::of_one("dump")
    };
    let config = format!("[http]\nmax_unread = \"20MiB\"\n{}", script.server("shop"));
    let gateway = Gateway::configured(&config).await;
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "shop__dump", "arguments": {}}});
    let ask = ask.to_string();
    let ask = head("connection: close\r\n", ask.len()) + &ask;
    let (mut silent, mut with_one) = (Vec::new(), None);
    for _ in 0..4 {
        let client = connected(&gateway, ask.as_bytes()).await;
        // its answer begins, and is not read: all of it is held, whatever the system took
        within("an answer", client.readable()).await.unwrap();
        silent.push(client);
        let open = descriptors(&gateway);
        let most = *with_one.get_or_insert(open);
        // read before that, it would not have been too much
        let is_closed = async || (descriptors(&gateway) <= most).then_some(());
        until("the one before it is closed", is_closed).await;
    }
    let mut whole = 0;
    for mut client in silent {
        let mut read = Vec::new();
        // one that is cut off may be reset
        let _ended = within("its end", client.read_to_end(&mut read)).await;
        whole += usize::from(read.len() > LARGE);
    }
    assert_eq!(whole, 1, "there is space for one");
    let answer = gateway.get("/readyz").await;
    assert_eq!(answer.0, 200, "{answer:?}");
    gateway.stopped().await;
}

#[tokio::test]
async fn clients_that_open_sessions_only_keep_none_out_that_calls() {
    let gateway = gateway("max_sessions_per_client = 4").await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}});
    let post = async |body: &serde_json::Value, session: Option<&str>| {
        let mut request = message(http().post(&gateway.url), body);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        within("an answer", request.send()).await.unwrap()
    };
    let open = async || {
        let opened = post(&initialize, None).await;
        let session = opened.headers().get("mcp-session-id");
        let session = session.map(|session| session.to_str().unwrap().to_owned());
        (opened, session)
    };
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "orders__get_order", "arguments": {"order_id": 1}}});
    let mut sessions = Vec::new();
    for _ in 0..4 {
        for _ in 0..6 {
            assert!(open().await.1.is_some());
        }
        let session = open().await.1.unwrap();
        assert_eq!(post(&call, Some(&session)).await.status(), 200);
        sessions.push(session);
    }
    let (refused, _) = open().await;
    assert_eq!(refused.status(), 503);
    let retry_after = refused.headers()["retry-after"].to_str().unwrap();
    assert!((1..=1800).contains(&retry_after.parse::<u64>().unwrap()));
    let said = refused.text().await.unwrap();
    assert!(
        said.contains("4 sessions of this client are open"),
        "{said}"
    );
    for session in &sessions {
        assert_eq!(post(&call, Some(session)).await.status(), 200);
    }
    gateway.stopped().await;
}
