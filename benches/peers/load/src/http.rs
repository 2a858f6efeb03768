//! One connection that is kept open, and opened again where it was lost.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Where a server listens: `http://HOST:PORT/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    authority: String,
    path: String,
}

impl Endpoint {
    /// Reads an address. Only plain HTTP with a port is one.
    pub fn new(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, format!("/{path}")),
            None => (rest, "/".to_owned()),
        };
        let (host, port) = authority.rsplit_once(':')?;
        (!host.is_empty() && port.parse::<u16>().is_ok()).then(|| Self {
            authority: authority.to_owned(),
            path,
        })
    }

    /// Another path of the same server.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self {
            authority: self.authority.clone(),
            path: path.to_owned(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// What came back.
#[derive(Debug)]
pub struct Exchange {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: Endpoint,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            sender: None,
        }
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = TcpStream::connect(&self.endpoint.authority).await;
        let stream = stream.map_err(|error| format!("no connection: {error}"))?;
        let _ = stream.set_nodelay(true);
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| format!("no connection: {error}"))?;
        tokio::spawn(async move {
            // the sender is notified of it too
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Sends one request. It is never sent twice, whatever becomes of it.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Exchange, String> {
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.open().await?,
        };
        // A server may have closed a kept connection; then this says so before anything is sent.
        if sender.ready().await.is_err() {
            sender = self.open().await?;
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self
            .endpoint
            .path
            .parse()
            .map_err(|error| format!("no path: {error}"))?;
        *request.headers_mut() = headers.clone();
        let host = HeaderValue::from_str(&self.endpoint.authority);
        let host = host.map_err(|error| format!("no host: {error}"))?;
        request.headers_mut().insert(HOST, host);
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| format!("no answer: {error}"))?;
        let (parts, incoming) = response.into_parts();
        let body = incoming.collect().await;
        let body = body.map_err(|error| format!("half an answer: {error}"))?;
        self.sender = Some(sender);
        Ok(Exchange {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes(),
        })
    }
}

/// One request over a connection of its own.
pub async fn fetch(endpoint: &Endpoint, method: Method, body: Bytes) -> Result<Exchange, String> {
    Connection::new(endpoint.clone())
        .send(method, &headers(), body)
        .await
}

/// The headers of every message.
pub(crate) fn headers() -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_with_a_port() {
        let endpoint = Endpoint::new("http://127.0.0.1:80/mcp/").unwrap();
        assert_eq!(endpoint.to_string(), "http://127.0.0.1:80/mcp/");
        assert_eq!(
            endpoint.at("/control/reset").to_string(),
            "http://127.0.0.1:80/control/reset"
        );
        for wrong in [
            "https://h:1/",
            "http://h/mcp",
            "http://:1/",
            "h:1",
            "http://h:x/",
        ] {
            assert_eq!(Endpoint::new(wrong), None, "{wrong}");
        }
    }
}
