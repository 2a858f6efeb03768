//! Clients that hold connections, bodies, answers and sessions without using them.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::scripted::Script;
use crate::support::{Gateway, Legacy, descriptors, result, sample, until, within};

/// A gateway with these keys of `[http]`.
async fn gateway(http: &str) -> Gateway {
    Gateway::configured(&format!("[http]\n{http}\n{}", sample("orders"))).await
}

const FEW: &str = "max_connections = 8\nmax_connections_per_address = 6";

/// Connects, and sends this much of a request.
async fn connected(gateway: &Gateway, begun: impl AsRef<[u8]>) -> TcpStream {
    let address = gateway.url.trim_start_matches("http://");
    let address = address.trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(begun.as_ref()).await; // it may be closed already
    stream
}

/// The head of a message of this length.
fn head(more: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n{more}content-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// A call of a legacy client without a session.
fn call(more: &str, tool: &str, arguments: &serde_json::Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let body = body.to_string();
    head(more, body.len()) + &body
}

#[tokio::test]
async fn half_sent_requests_keep_no_client_out() {
    let body = head("", 100) + &" ".repeat(50);
    for (begun, times) in [("POST /mcp HTTP/1.1\r\nhost: 127", 50), (&body, 30)] {
        let gateway = gateway(FEW).await;
        let mut held = Vec::new();
        for _ in 0..times {
            held.push(connected(&gateway, begun).await);
            result(&gateway.order(1).await);
        }
        // the first one was closed, and not answered
        let read = within("its end", held[0].read(&mut [0; 16])).await;
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
        gateway.stopped().await;
    }
}

#[tokio::test]
async fn a_connection_with_a_request_in_work_is_not_ended_for_another() {
    let gateway = gateway(FEW).await;
    let mut busy = Vec::new();
    for region in 0..6 {
        // not the same call, of which one would run
        let report = json!({"region": region.to_string(), "delay_ms": 3_000});
        busy.push(connected(&gateway, call("", "orders__sales_report", &report)).await);
    }
    gateway.running("orders", 6).await;
    let mut refused = connected(&gateway, "").await;
    let read = within("the refusal", refused.read(&mut [0; 16])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    for mut stream in busy {
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
    }
    gateway.stopped().await;
}

#[tokio::test]
async fn large_bodies_that_come_slowly_keep_no_small_one_out() {
    const LARGE: usize = 3 << 20;
    let gateway = gateway("max_bodies = \"4MiB\"").await;
    // the last byte of neither comes, and there is space for one
    let begun = head("", LARGE) + &" ".repeat(LARGE - 1);
    let mut one = connected(&gateway, &begun).await;
    let mut other = connected(&gateway, &begun).await;
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
    result(&gateway.order(1).await);
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
    let ask = call("connection: close\r\n", "shop__dump", &json!({}));
    let (mut silent, mut with_one) = (Vec::new(), None);
    for _ in 0..4 {
        let client = connected(&gateway, &ask).await;
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
    assert_eq!(gateway.get("/readyz").await.0, 200);
    gateway.stopped().await;
}

#[tokio::test]
async fn clients_that_open_sessions_only_keep_none_out_that_calls() {
    let gateway = gateway("max_sessions_per_client = 4").await;
    let calls = async |session: &Legacy| {
        let order = session.call("orders__get_order", json!({"order_id": 1}));
        assert!(order.await.contains("lamp"));
    };
    let mut sessions = Vec::new();
    for _ in 0..4 {
        for _ in 0..6 {
            Legacy::open(&gateway.url).await;
        }
        let session = Legacy::open(&gateway.url).await;
        calls(&session).await;
        sessions.push(session);
    }
    let Err(refused) = Legacy::with(&gateway.url, Vec::new()).await else {
        panic!("one session too many");
    };
    assert_eq!(refused.status(), 503);
    let said = refused.text().await.unwrap();
    let expected = "4 sessions of this client are open";
    assert!(said.contains(expected), "{said}");
    for session in &sessions {
        calls(session).await;
    }
    gateway.stopped().await;
}
