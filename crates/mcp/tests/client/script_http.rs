//! An HTTP server played by the test, byte by byte: one request a connection, answered or not.

use std::collections::HashMap;
use std::net::SocketAddr;

use callward_core::{ToolCall, ToolError};
use callward_mcp::client::{HttpSpec, Target, Upstream, UpstreamOptions};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::script::{Calling, DISCOVERED, INITIALIZED, LONG, RESULT, call, calling, start};

pub(crate) const JSON: &str = "content-type: application/json\r\n";

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
    accepting: JoinSet<()>,
}

/// One request, and the connection to answer it on. Dropped, it breaks the connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    stream: BufReader<TcpStream>,
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
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, to_streams) = (sender.clone(), to_streams.clone());
                open.spawn(async move {
                    if let Some(exchange) = Exchange::read(stream).await {
                        let _ = match &exchange.method[..] {
                            "GET" => to_streams.send(exchange),
                            _ => sender.send(exchange),
                        };
                    }
                });
                while open.try_join_next().is_some() {}
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
        self.accepting.shutdown().await;
        self.address
    }

    pub(crate) fn upstream(&self, set: impl FnOnce(&mut UpstreamOptions)) -> Upstream {
        upstream_at(self.address, set)
    }

    pub(crate) async fn serve(&mut self, upstream: &Upstream, call: ToolCall) -> Exchange {
        self.answer(calling(upstream, call)).await
    }

    pub(crate) async fn answer(&mut self, running: Calling) -> Exchange {
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
        let error = self.fail_once(upstream, fault).await;
        self.serve(upstream, call("x", "{}")).await;
        error
    }

    pub(crate) async fn fail_once<Fut: Future<Output = ()>>(
        &mut self,
        upstream: &Upstream,
        fault: impl FnOnce(Exchange) -> Fut,
    ) -> ToolError {
        let running = calling(upstream, call("x", "{}"));
        fault(self.asked("tools/call").await).await;
        running.await.unwrap().unwrap_err()
    }

    pub(crate) async fn next(&mut self) -> Exchange {
        self.requests.recv().await.expect("a request")
    }

    pub(crate) async fn stream(&mut self) -> Exchange {
        self.streams.recv().await.expect("a request for a stream")
    }

    /// Returns the next request of either kind.
    pub(crate) async fn either(&mut self) -> Exchange {
        tokio::select! {
            Some(asked) = self.requests.recv() => asked,
            Some(asked) = self.streams.recv() => asked,
        }
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

impl Exchange {
    async fn read(stream: TcpStream) -> Option<Self> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let (method, rest) = line.split_once(' ')?;
        let path = rest.split(' ').next()?.to_owned();
        let (method, mut headers) = (method.to_owned(), HashMap::new());
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length");
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        Some(Self {
            method,
            path,
            headers,
            body: String::from_utf8(body).unwrap(),
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

    pub(crate) async fn events(&mut self) {
        self.write(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n",
        )
        .await;
    }

    pub(crate) async fn end(&mut self, result: &str) {
        let id = self.id();
        self.event(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
        .await;
    }

    pub(crate) async fn event(&mut self, data: &str) {
        self.write(&format!("event: message\r\ndata: {data}\r\n\r\n"))
            .await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.write_bytes(text.as_bytes()).await;
    }

    pub(crate) async fn write_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // a reset is as good as an end
        let _ = self.stream.read_to_end(&mut rest).await;
    }
}
