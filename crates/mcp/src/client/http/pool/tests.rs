use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;
use url::Url;

use super::*;
use crate::client::http::client::Client;
use crate::client::http::connect::{Connections, SendError};
use crate::client::http::outgoing::{Outgoing, Upload};

mod answers;

const LONG: Duration = Duration::from_secs(60);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn body() -> (Outgoing, Upload) {
    Outgoing::new(Bytes::from_static(b"{}"))
}

fn request() -> (Request<Outgoing>, Upload) {
    let (body, upload) = body();
    (Request::post("/").body(body).unwrap(), upload)
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
    let url = Url::parse(&format!("{scheme}://{address}/mcp")).unwrap();
    Client::new(
        &Matcher::builder().build(),
        url,
        HeaderMap::new(),
        LONG,
        Connections::new(64),
    )
    .unwrap()
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Reads a request, up to the end of `{}`. False at the end of the connection.
async fn read_request<S: AsyncReadExt + Unpin>(stream: &mut S) -> bool {
    let mut read = Vec::new();
    while !read.ends_with(b"{}") {
        match stream.read_buf(&mut read).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    true
}

/// Answers each request of a connection.
async fn answer_all<S: AsyncReadExt + AsyncWriteExt + Unpin>(mut stream: S) {
    while read_request(&mut stream).await {
        stream.write_all(OK).await.unwrap();
    }
}

async fn call(client: &Client) -> Result<Bytes, SendError> {
    let headers = client.headers.clone();
    let response = client.send(Method::POST, headers, body().0).await?;
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
async fn a_connection_that_closes_before_it_takes_a_request_gives_it_back() {
    let (conn, other) = duplex().await;
    assert!(conn.is_ready());
    drop(other); // between the look at it and the request
    let (request, upload) = request();
    let failed = conn.send(request).await.err().unwrap();
    assert!(failed.untaken.is_some());
    assert!(upload.withdraw());
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
