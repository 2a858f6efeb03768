//! An HTTP server played by the test, byte by byte: one request a connection, answered or not.

use std::collections::HashMap;
use std::net::SocketAddr;

use callward_core::{ToolCall, ToolError};
use callward_mcp::client::{HttpSpec, Target, Upstream, UpstreamOptions};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::script::{DISCOVERED, INITIALIZED, LONG, RESULT, call, calling, start};

pub(crate) const JSON: &str = "content-type: application/json\r\n";

/// An upstream of a modern server.
pub(crate) async fn modern() -> (Upstream, Server) {
    modern_with(|_| {}).await
}

pub(crate) async fn modern_with(set: impl FnOnce(&mut UpstreamOptions)) -> (Upstream, Server) {
    let mut server = Server::start().await;
    let upstream = server.upstream(set);
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
    (upstream, server)
}

/// An upstream of a legacy server, in this session.
pub(crate) async fn legacy(session: &str) -> (Upstream, Server) {
    let mut server = Server::start().await;
    let upstream = server.upstream(|_| {});
    server.greet_legacy(session).await;
    upstream.ready(LONG).await.unwrap();
    (upstream, server)
}

/// A listening server. Dropped, it is gone, and its port free again.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Exchange>,
    /// What is asked for with GET: a legacy server may be asked for a stream at any time.
    streams: mpsc::UnboundedReceiver<Exchange>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One request, and the connection to answer it on. Dropped, it breaks the connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    stream: TcpStream,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let (to_streams, streams) = mpsc::unbounded_channel();
        let accepting = serving(listener, move |stream| {
            let (sender, to_streams) = (sender.clone(), to_streams.clone());
            async move {
                if let Some(exchange) = Exchange::read(stream).await {
                    let _ = match &exchange.method[..] {
                        "GET" => to_streams.send(exchange),
                        _ => sender.send(exchange),
                    };
                }
            }
        });
        Self {
            address,
            requests,
            streams,
            accepting,
        }
    }

    /// Stops listening and waits until the port is free.
    pub(crate) async fn stop(mut self) -> SocketAddr {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.address
    }

    pub(crate) fn upstream(&self, set: impl FnOnce(&mut UpstreamOptions)) -> Upstream {
        upstream_at(self.address, set)
    }

    /// Answers a call that the upstream makes; returns what the server got.
    pub(crate) async fn serve(&mut self, upstream: &Upstream, call: ToolCall) -> Exchange {
        let running = calling(upstream, call);
        let mut asked = self.asked("tools/call").await;
        asked.reply(RESULT).await;
        running.await.unwrap().unwrap();
        asked
    }

    /// Fails a call of the upstream as the server likes, then serves another one.
    pub(crate) async fn fail<Fut: Future<Output = ()>>(
        &mut self,
        upstream: &Upstream,
        fault: impl FnOnce(Exchange) -> Fut,
    ) -> ToolError {
        let running = calling(upstream, call("x", "{}"));
        fault(self.asked("tools/call").await).await;
        let error = running.await.unwrap().unwrap_err();
        self.serve(upstream, call("x", "{}")).await;
        error
    }

    /// Returns the next request that is not for a stream.
    pub(crate) async fn next(&mut self) -> Exchange {
        self.requests.recv().await.expect("a request")
    }

    /// Returns the next request for a stream.
    pub(crate) async fn stream(&mut self) -> Exchange {
        self.streams.recv().await.expect("a request for a stream")
    }

    /// Returns the next request, which has to be a POST of this JSON-RPC method.
    pub(crate) async fn asked(&mut self, method: &str) -> Exchange {
        let exchange = self.next().await;
        assert_eq!(exchange.json()["method"], method, "{exchange:?}");
        exchange
    }

    pub(crate) async fn greet_modern(&mut self) {
        self.greet_modern_with(DISCOVERED).await;
    }

    /// Greets with this discovery, and opens no sessions.
    pub(crate) async fn greet_modern_with(&mut self, discovered: &str) {
        self.asked("server/discover").await.result(discovered).await;
        self.asked("initialize").await.refuse(400, -32601).await;
    }

    /// Greets with `initialize`; the session gets this id. Returns the greeting's headers.
    pub(crate) async fn initialize(&mut self, session: &str) -> HashMap<String, String> {
        let hello = self.asked("initialize").await;
        let headers = hello.headers.clone();
        let (id, result) = (
            hello.id(),
            INITIALIZED.replace(r#"{"listChanged":true}"#, "{}"),
        );
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let opened = format!("{JSON}mcp-session-id: {session}\r\n");
        hello.answer(200, &opened, &body).await;
        let ready = self.asked("notifications/initialized").await;
        assert_eq!(ready.headers["mcp-session-id"], session);
        ready.answer(202, "", "").await;
        headers
    }

    pub(crate) async fn greet_legacy(&mut self, session: &str) {
        let probe = self.asked("server/discover").await;
        probe.answer(400, "", "Bad Request: no session").await;
        self.initialize(session).await;
    }
}

pub(crate) fn upstream_at(address: SocketAddr, set: impl FnOnce(&mut UpstreamOptions)) -> Upstream {
    let spec = HttpSpec::new(&format!("http://{address}/mcp")).unwrap();
    start(Target::Http(spec), set)
}

/// Serves each connection in a task of its own. Aborted, all of them end.
pub(crate) fn serving<Fut>(
    listener: TcpListener,
    serve: impl Fn(TcpStream) -> Fut + Send + 'static,
) -> JoinHandle<()>
where
    Fut: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.spawn(serve(stream));
            while open.try_join_next().is_some() {}
        }
    })
}

/// What has arrived of a request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    /// Where its head ends, and where all of it does.
    ends: Option<(usize, usize)>,
}

impl Request {
    /// Reads up to `most` bytes in all; less if the request ends before, or the client.
    pub(crate) async fn read(
        &mut self,
        stream: &mut TcpStream,
        most: usize,
    ) -> std::io::Result<()> {
        let mut piece = vec![0; 1 << 16];
        while self.bytes.len() < most && !self.is_whole() {
            let space = piece.len().min(most - self.bytes.len());
            let read = stream.read(&mut piece[..space]).await?;
            if read == 0 {
                return Ok(());
            }
            self.bytes.extend_from_slice(&piece[..read]);
            if self.ends.is_none()
                && let Some(at) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n")
            {
                let head = at + 4;
                let length = headers(&self.bytes[..head]).remove("content-length");
                let length: usize = length.map_or(0, |length| length.parse().unwrap());
                self.ends = Some((head, head + length));
            }
        }
        Ok(())
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.ends.is_some_and(|(_, end)| self.bytes.len() >= end)
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.ends.map_or(&[], |(head, _)| &self.bytes[head..])
    }
}

fn headers(head: &[u8]) -> HashMap<String, String> {
    let head = std::str::from_utf8(head).unwrap();
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect()
}

impl Exchange {
    async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut request = Request::default();
        request.read(&mut stream, usize::MAX).await.ok()?;
        let (head, body) = request.bytes.split_at(request.ends?.0);
        let (method, _) = std::str::from_utf8(head).unwrap().split_once(' ')?;
        Some(Self {
            method: method.to_owned(),
            headers: headers(head),
            body: String::from_utf8(body.to_vec()).unwrap(),
            stream,
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the JSON-RPC id, raw.
    pub(crate) fn id(&self) -> String {
        self.json()["id"].to_string()
    }

    pub(crate) async fn result(mut self, result: &str) {
        self.reply(result).await;
    }

    pub(crate) async fn reply(&mut self, result: &str) {
        let id = self.id();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        self.respond(200, JSON, &body).await;
    }

    pub(crate) async fn refuse(self, status: u16, code: i64) {
        let id = self.id();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":[1 ]}}}}"#
        );
        self.answer(status, JSON, &body).await;
    }

    pub(crate) async fn answer(mut self, status: u16, headers: &str, body: &str) {
        self.respond(status, headers, body).await;
    }

    async fn respond(&mut self, status: u16, headers: &str, body: &str) {
        self.write(&format!(
            "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        ))
        .await;
    }

    /// Begins an event stream.
    pub(crate) async fn events(&mut self) {
        self.write(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n",
        )
        .await;
    }

    /// Sends the result as an event.
    pub(crate) async fn end(&mut self, result: &str) {
        let id = self.id();
        self.event(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
        .await;
    }

    /// Sends one event.
    pub(crate) async fn event(&mut self, data: &str) {
        self.write(&format!("event: message\r\ndata: {data}\r\n\r\n"))
            .await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // a reset is as good as an end
        let _ = self.stream.read_to_end(&mut rest).await;
    }
}
