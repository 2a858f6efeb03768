use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;
use url::Url;

use super::*;
use crate::client::http::answer::AnswerBody;
use crate::client::http::client::Client;
use crate::client::http::connect::{Connections, SendError};
use crate::client::http::exchange::unsent;
use crate::client::http::outgoing::Outgoing;

const LONG: Duration = Duration::from_secs(60);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn body() -> Outgoing {
    Outgoing::new(Bytes::from_static(b"{}")).0
}

/// A connection, and its other end.
async fn duplex() -> (Box<Conn>, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let conn = Conn::over(Box::new(TokioIo::new(ours)), None)
        .await
        .unwrap();
    (conn, theirs)
}

fn client(scheme: &str, listener: &TcpListener) -> Client {
    let address = listener.local_addr().unwrap();
    behind("", &format!("{scheme}://{address}/mcp")).unwrap()
}

/// A client behind a proxy, if there is one.
fn behind(proxy: &str, url: &str) -> Result<Client, String> {
    let proxies = Matcher::builder().all(proxy).build();
    let (url, headers) = (Url::parse(url).unwrap(), HeaderMap::new());
    Client::new(&proxies, url, headers, LONG, Connections::new(64))
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Reads a request, up to the end of `{}` or of a `CONNECT`; nothing at the end of the connection.
async fn read_request<S: AsyncReadExt + Unpin>(stream: &mut S) -> Option<String> {
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8(read.clone()).unwrap();
        if text.ends_with("{}") || (text.starts_with("CONNECT") && text.ends_with("\r\n\r\n")) {
            return Some(text);
        }
    }
}

async fn answer_all<S: AsyncReadExt + AsyncWriteExt + Unpin>(mut stream: S) {
    while read_request(&mut stream).await.is_some() {
        stream.write_all(OK).await.unwrap();
    }
}

async fn call(client: &Client) -> Result<Bytes, SendError> {
    let headers = client.headers.clone();
    let response = client.send(None, Method::POST, headers, body()).await?;
    Ok(response.into_body().collect().await.unwrap().to_bytes())
}

/// A connection that sees nothing for a number of reads, and counts in the second number how often
/// it is shut down.
struct Blind(TokioIo<DuplexStream>, Arc<AtomicUsize>, Arc<AtomicUsize>);

impl hyper::rt::Read for Blind {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let (left, relaxed) = (&self.1, Ordering::Relaxed);
        let is_blind = left.fetch_update(relaxed, relaxed, |left| left.checked_sub(1));
        if is_blind.is_ok() {
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for Blind {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.2.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn what_sends_unasked_or_is_over_is_not_used() {
    let pool = Arc::new(Pool::default());
    let (conn, mut other) = duplex().await;
    pool.put(conn);
    other.write_all(OK).await.unwrap();
    assert!(pool.take().is_none());
    let (mut conn, other) = duplex().await;
    drop(other);
    assert!(!conn.look());
    pool.put(conn);
    assert_eq!(pool.len(), 0);
}

#[tokio::test]
async fn a_request_that_was_not_taken_goes_to_another_connection() {
    let listener = listener().await;
    let client = client("http", &listener);
    let (ours, theirs) = tokio::io::duplex(1024);
    let blind = Arc::new(AtomicUsize::new(0));
    let wire = Blind(TokioIo::new(ours), blind.clone(), Arc::default());
    client
        .pool
        .put(Conn::over(Box::new(wire), None).await.unwrap());
    drop(theirs);
    // that it closed is not seen by the look before it is used
    blind.store(1, Ordering::Relaxed);
    let server = async {
        let (stream, _) = listener.accept().await.unwrap();
        answer_all(stream).await;
    };
    tokio::select! {
        answer = call(&client) => assert_eq!(answer.unwrap(), "ok"),
        () = server => panic!("the connection closed without an answer"),
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_says_so_to_the_server() {
    let (ours, _theirs) = tokio::io::duplex(1024);
    let ends = Arc::new(AtomicUsize::new(0));
    let wire = Blind(TokioIo::new(ours), Arc::default(), ends.clone());
    let conn = Conn::over(Box::new(wire), None).await.unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 0);
    drop(conn);
    // under TLS a message, which closing the socket alone is not
    assert_eq!(ends.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_number_of_idle_connections_is_bounded() {
    let pool = Arc::new(Pool::default());
    let mut others = Vec::new();
    for _ in 0..=MAX_IDLE {
        let (conn, other) = duplex().await;
        pool.put(conn);
        others.push(other);
    }
    assert_eq!(pool.len(), MAX_IDLE);
    let mut one_too_many = others.pop().unwrap();
    assert_eq!(one_too_many.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_idle_for_too_long_is_closed() {
    let pool = Arc::new(Pool::default());
    let metrics = tokio::runtime::Handle::current().metrics();
    let begun = Instant::now();
    let (first, mut first_other) = duplex().await;
    pool.put(first);
    tokio::time::advance(IDLE / 2).await;
    let (second, mut second_other) = duplex().await;
    pool.put(second);
    assert_eq!(metrics.num_alive_tasks(), 1, "one for all of them");
    assert_eq!(first_other.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!((begun.elapsed().as_secs(), pool.len()), (IDLE.as_secs(), 1));
    assert_eq!(second_other.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(begun.elapsed().as_secs(), (IDLE * 3 / 2).as_secs());
    // and anyone who looks after it begins again
    let (third, mut third_other) = duplex().await;
    pool.put(third);
    assert_eq!(third_other.read(&mut [0; 8]).await.unwrap(), 0);
    tokio::time::sleep(IDLE).await;
    assert_eq!((pool.len(), metrics.num_alive_tasks()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_idle_for_too_long_is_not_taken() {
    let pool = Arc::new(Pool::default());
    let (conn, _other) = duplex().await;
    pool.put(conn);
    pool.idle.lock().conns[0].0 -= IDLE; // before anyone who closes it woke up
    assert!(pool.take().is_none());
}

#[tokio::test]
async fn a_call_takes_what_comes_back_while_it_waits_for_a_connection() {
    // there is no TLS here, so no call gets a connection
    let mute = listener().await;
    let client = client("https", &mute);
    let (conn, other) = duplex().await;
    let server = tokio::spawn(answer_all(other));
    let comes_back = async {
        let (stream, _) = mute.accept().await.unwrap();
        client.pool.put(conn);
        stream
    };
    let (answer, _open) = tokio::join!(call(&client), comes_back);
    assert_eq!(answer.unwrap(), "ok");
    drop(client);
    server.await.unwrap();
}

/// An answer of which some is still to come.
const HALF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";

/// Sends a request, gets this for an answer, and reads nothing of its body.
async fn unread(pool: &Arc<Pool>, answer: &[u8]) -> (AnswerBody, DuplexStream) {
    let (conn, mut other) = duplex().await;
    let request = Request::post("/").body(body()).unwrap();
    let server = async {
        read_request(&mut other).await.unwrap();
        other.write_all(answer).await.unwrap();
    };
    let (answered, ()) = tokio::join!(conn.send(request), server);
    let (conn, response) = answered.unwrap();
    let body = AnswerBody::new(response.into_body(), conn, pool.clone());
    (body, other)
}

#[tokio::test]
async fn a_connection_is_free_once_all_of_its_answer_came() {
    // what comes after the first half, whether the half is read, and whether that frees it
    for (more, is_read, is_free) in [
        ("", false, false),
        ("", true, false),
        (" more", false, true),
    ] {
        let pool = Arc::new(Pool::default());
        let (mut body, mut other) = unread(&pool, HALF).await;
        if is_read {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), "half");
        }
        other.write_all(more.as_bytes()).await.unwrap();
        assert_eq!(pool.len(), 0, "no call has looked");
        drop(body);
        assert_eq!(pool.len(), usize::from(is_free), "{more} {is_read}");
        if !is_free {
            assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0, "closed");
        }
    }
    let pool = Arc::new(Pool::default());
    let (body, _other) = unread(&pool, OK).await;
    assert!(pool.take().unwrap().look(), "before it is read");
    assert_eq!(body.collect().await.unwrap().to_bytes(), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_an_answer_is_woken_by_more_of_it() {
    let pool = Arc::new(Pool::default());
    let (body, mut other) = unread(&pool, HALF).await;
    let more = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.write_all(b" more").await.unwrap();
    };
    let begun = Instant::now();
    // a task of its own, which nothing else wakes
    let read = tokio::spawn(tokio::time::timeout(LONG, body.collect()));
    let (read, ()) = tokio::join!(read, more);
    assert_eq!(read.unwrap().unwrap().unwrap().to_bytes(), "half more");
    // and not only looked once more when the time was over
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

#[tokio::test]
async fn a_proxy_is_sent_plain_requests_and_asked_for_a_tunnel_otherwise() {
    let listener = listener().await;
    let proxy = format!("http://me:secret@{}", listener.local_addr().unwrap());
    for (url, answer, seen) in [
        (
            "http://ada:p%40ss@server.test/mcp?x=1",
            OK,
            &[
                "POST http://server.test/mcp?x=1 HTTP/1.1",
                "host: server.test",
                // "me:secret" and "ada:p@ss"
                "proxy-authorization: Basic bWU6c2VjcmV0",
                "authorization: Basic YWRhOnBAc3M=",
            ][..],
        ),
        (
            "https://server.test/mcp",
            b"HTTP/1.1 403 No\r\n\r\n",
            &["CONNECT server.test:443 HTTP/1.1"],
        ),
    ] {
        let client = behind(&proxy, url).unwrap();
        let proxied = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await.unwrap();
            stream.write_all(answer).await.unwrap();
            (stream, request)
        };
        let (answered, (_stream, request)) = tokio::join!(call(&client), proxied);
        match answered {
            Ok(body) => assert_eq!((&body[..], answer), (&b"ok"[..], OK)),
            Err(error) => assert!(matches!(error, SendError::Connect(..)), "{error:?}"),
        }
        for line in seen {
            let is_sent = request.lines().any(|sent| sent == *line);
            assert!(is_sent, "{line}: {request}");
        }
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_named_without_its_credentials() {
    let address = listener().await.local_addr().unwrap();
    let proxy = format!("http://me:secret@{address}");
    for url in ["http://server.test/mcp", "https://server.test/mcp"] {
        let failed = call(&behind(&proxy, url).unwrap()).await;
        let error = unsent(&failed.unwrap_err(), false).into_tool_error();
        let message = &error.message;
        let named = format!("the proxy http://{address}");
        assert!(message.contains(&named), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    let refused = behind("socks5://127.0.0.1:1", "http://server.test/mcp");
    assert!(refused.err().unwrap().contains("socks5"));
}

#[test]
fn what_is_configured_comes_before_what_follows_from_the_address() {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer t"))]);
    let url = Url::parse("http://ada@server.test:8080/mcp").unwrap();
    let none = Matcher::builder().build();
    let client = Client::new(&none, url, headers, LONG, Connections::new(8)).unwrap();
    assert_eq!(client.headers[AUTHORIZATION], "Bearer t");
    assert_eq!(client.headers[HOST], "server.test:8080");
}
