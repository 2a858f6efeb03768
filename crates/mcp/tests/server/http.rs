//! A served router on a loopback socket, and a raw client for it.

use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use callward_mcp::server::{Anonymous, HttpOptions, router};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::backend::Bench;

/// What every modern request carries.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"0"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

pub(crate) struct Server {
    pub(crate) bench: Arc<Bench>,
    pub(crate) url: String,
    client: reqwest::Client,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        let (bench, mut options) = (Bench::new(), HttpOptions::default());
        change(&mut options);
        let router = router(Arc::clone(&bench), Arc::<Anonymous>::default(), options);
        Self::serving(bench, router).await
    }

    pub(crate) async fn serving(bench: Arc<Bench>, router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            bench,
            url,
            client: client(),
            task,
        }
    }

    pub(crate) fn request(&self, method: Method) -> RequestBuilder {
        self.client.request(method, &self.url)
    }

    pub(crate) fn listen(&self, session: &str) -> RequestBuilder {
        self.request(Method::GET)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", session)
    }

    pub(crate) async fn delete(&self, session: &str) -> u16 {
        let request = self.request(Method::DELETE);
        status(request.header("mcp-session-id", session)).await
    }

    /// A POST with the headers every client sends.
    pub(crate) fn post(&self, body: impl Into<String>) -> RequestBuilder {
        self.request(Method::POST)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.into())
    }

    /// A modern POST with its mirrored headers; `params` are members beside `_meta`.
    pub(crate) fn modern(&self, method: &str, params: &str) -> RequestBuilder {
        self.modern_as(method, params, META)
    }

    /// A modern POST with this `_meta` member.
    pub(crate) fn modern_as(&self, method: &str, params: &str, meta: &str) -> RequestBuilder {
        let comma = if params.is_empty() { "" } else { "," };
        let body = request(method, &format!("{params}{comma}{meta}"));
        let request = self
            .post(body)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        let members: Value = serde_json::from_str(&format!("{{{params}}}")).unwrap();
        match members["name"].as_str() {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    pub(crate) async fn session(&self) -> String {
        let answer = self.post(INITIALIZE).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let id = session_of(answer.headers());
        let noted = self.post(INITIALIZED).header("mcp-session-id", &id);
        assert_eq!(status(noted).await, 202);
        id
    }
}

pub(crate) fn session_of(headers: &http::HeaderMap) -> String {
    headers["mcp-session-id"].to_str().unwrap().to_owned()
}

/// A request with the id 7.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
}

/// A call of a tool as a message; `more` are members beside the name.
pub(crate) fn call(id: &str, tool: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"{more}}}}}"#
    )
}

pub(crate) fn cancel(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

/// A client that talks plain HTTP; the provider is only there because the builder insists.
pub(crate) fn client() -> reqwest::Client {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub(crate) async fn json(answer: Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

pub(crate) async fn ask(request: RequestBuilder) -> Value {
    json(request.send().await.unwrap()).await
}

pub(crate) async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

/// Sends a call and returns the text of its result.
pub(crate) async fn text(request: RequestBuilder) -> String {
    let answer = ask(request).await;
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Sends a call of `seen` and returns what reached the tool.
pub(crate) async fn seen(request: RequestBuilder) -> Value {
    serde_json::from_str(&text(request).await).unwrap()
}

pub(crate) struct Events {
    response: Response,
    buffer: String,
}

impl Events {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        assert_eq!(headers["content-type"], "text/event-stream");
        assert_eq!(headers["x-accel-buffering"], "no");
        Self {
            response,
            buffer: String::new(),
        }
    }

    /// Returns the next message; nothing at the end of the stream. Comments are left out.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let (_, Some(message)) = self.event().await? {
                return Some(message);
            }
        }
    }

    /// Returns the id of the next event or comment, and its message.
    pub(crate) async fn event(&mut self) -> Option<(Option<String>, Option<Value>)> {
        let event = self.raw().await?;
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let message = field("data: ").filter(|data| !data.is_empty());
        let message = message.map(|data| serde_json::from_str(data).unwrap());
        Some((field("id: ").map(str::to_owned), message))
    }

    /// Returns the next event or comment as it came, without the empty line that ends it.
    pub(crate) async fn raw(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.buffer = rest;
                return Some(event);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}
