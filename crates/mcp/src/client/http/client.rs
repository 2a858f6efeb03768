//! The HTTP client: one for each upstream, with its own pool.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use callward_core::redact;
use http::header::{AUTHORIZATION, HOST, PROXY_AUTHORIZATION};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;
use url::Url;

use super::answer::AnswerBody;
use super::conn::{Conn, Unanswered};
use super::connect::{Connect, Connections, SendError};
use super::outgoing::Outgoing;
use super::pool::Pool;

/// A client of one address.
pub(super) struct Client {
    connect: Connect,
    pub(super) pool: Arc<Pool>,
    uri: Uri,
    /// The request target, in the form that the recipient of the request expects.
    target: Uri,
    /// What every request carries: the headers of the configuration, and what follows from the
    /// address.
    pub(super) headers: HeaderMap,
}

impl Client {
    /// Builds the client.
    ///
    /// Redirects are not followed: they would send a call to an address that is not configured,
    /// some of them as a GET. Only a request that was certainly not sent is sent again: a request
    /// goes to another connection if the one it was given to had closed before it took any of it.
    ///
    /// # Errors
    ///
    /// An invalid address, an invalid proxy in the environment, or a failure of TLS.
    pub(super) fn new(
        proxies: &Matcher,
        mut url: Url,
        mut headers: HeaderMap,
        connect_timeout: Duration,
        connections: Connections,
    ) -> Result<Self, String> {
        let credentials = take_credentials(&mut url);
        let uri: Uri = url.as_str().parse().map_err(|error| {
            let url = redact::url(url.as_str());
            format!("no HTTP client: {url} cannot be asked for: {error}")
        })?;
        let tls = tls(url.scheme() == "https")?;
        let mut connect = Connect::new(&uri, proxies, tls, connect_timeout, connections)?;
        // what is configured comes before what follows from the address
        let host = uri.authority().map(Authority::as_str).unwrap_or_default();
        let host = HeaderValue::from_str(host)
            .map_err(|_| format!("no HTTP client: the host {host:?} cannot travel in a header"))?;
        headers.entry(HOST).or_insert(host);
        if let Some(credentials) = credentials {
            headers.entry(AUTHORIZATION).or_insert(credentials);
        }
        if let Some(credentials) = connect.credentials.take() {
            headers.entry(PROXY_AUTHORIZATION).or_insert(credentials);
        }
        let target = match connect.is_forwarded {
            true => uri.clone(),
            // the default is `/`
            false => uri
                .path_and_query()
                .cloned()
                .map(Uri::from)
                .unwrap_or_default(),
        };
        Ok(Self {
            connect,
            pool: Arc::default(),
            uri,
            target,
            headers,
        })
    }

    /// Returns host and port that it asks.
    pub(super) fn address(&self) -> (Option<&str>, Option<u16>) {
        let usual = match self.uri.scheme_str() {
            Some("https") => 443,
            _ => 80,
        };
        (self.uri.host(), self.uri.port_u16().or(Some(usual)))
    }

    /// Sends one request. `headers` are all of its headers, the client's own included. Dropping the
    /// future, or the answer before its end, closes the connection.
    ///
    /// # Errors
    ///
    /// [`SendError`] if there is no connection, or it breaks before the head of an answer.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Response<AnswerBody>, SendError> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        loop {
            let (conn, is_used) = match self.pool.take() {
                Some(conn) => (conn, true),
                None => self.conn().await?,
            };
            match conn.send(request).await {
                Ok((conn, response)) => {
                    let pool = self.pool.clone();
                    return Ok(response.map(|bytes| AnswerBody::new(bytes, conn, pool)));
                }
                // a failure of an unused connection is the server's: it would fail again
                Err(Unanswered {
                    untaken: Some(same),
                    ..
                }) if is_used => request = same,
                Err(unanswered) => return Err(SendError::Broken(unanswered.cause)),
            }
        }
    }

    /// Opens a connection, or takes one that is returned meanwhile. Returns `true` if it was used
    /// before.
    async fn conn(&self) -> Result<(Box<Conn>, bool), SendError> {
        let opening = self.connect.open();
        let mut opening = Box::pin(async move {
            let (wire, permit) = opening.await?;
            let conn = Conn::over(wire, Some(permit)).await;
            conn.map_err(|error| SendError::Broken(error.into()))
        });
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return opened.map(|conn| (conn, false)),
                () = self.pool.freed.notified() => {}
            }
            if let Some(conn) = self.pool.take() {
                let pool = Arc::downgrade(&self.pool);
                tokio::spawn(async move {
                    // it was requested, so it is kept for the next request
                    if let (Ok(conn), Some(pool)) = (opening.await, pool.upgrade()) {
                        pool.put(conn);
                    }
                });
                return Ok((conn, true));
            }
        }
    }
}

/// Moves user name and password of an address into a header.
fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decoded(url.username());
    pair.push(b':');
    pair.extend(decoded(url.password().unwrap_or_default()));
    if pair == b":" {
        return None;
    }
    // only an address without a host refuses this, and each one here has a host
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let header = format!("Basic {}", BASE64_STANDARD.encode(pair));
    let mut header = HeaderValue::try_from(header).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The provider is named here, so that it does not depend on what else is linked into the process.
fn tls(verifies: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?;
    if !verifies {
        // plain HTTP works on machines without any certificate
        return Ok(config
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth());
    }
    let verifier = Verifier::new(provider)
        .map_err(|error| format!("no TLS: the system's certificates cannot be used: {error}"))?;
    Ok(config
        .dangerous() // rustls calls any custom verifier dangerous; this is the system's
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::exchange::unsent;
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Takes one request, up to the end of `{}`, and answers it; then says what it was.
    async fn one_request(listener: &TcpListener, answer: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\n") && !read.ends_with(b"{}") {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(read).unwrap().to_ascii_lowercase()
    }

    fn outgoing() -> Outgoing {
        Outgoing::new(Bytes::from_static(b"{}")).0
    }

    fn client(proxy: &str, url: &str) -> Result<Client, String> {
        let proxies = Matcher::builder().all(proxy).build();
        let url = Url::parse(url).unwrap();
        Client::new(&proxies, url, HeaderMap::new(), LONG, Connections::new(8))
    }

    async fn send(client: &Client) -> Result<Response<AnswerBody>, SendError> {
        let headers = client.headers.clone();
        client.send(Method::POST, headers, outgoing()).await
    }

    #[tokio::test]
    async fn a_proxy_is_sent_plain_requests_and_asked_for_a_tunnel_otherwise() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://me:secret@{}", listener.local_addr().unwrap());
        let ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        for (url, answer, seen) in [
            (
                "http://ada:p%40ss@server.test/mcp?x=1",
                ok,
                &[
                    "post http://server.test/mcp?x=1 http/1.1",
                    "host: server.test",
                    // "me:secret" and "ada:p@ss", lower case as the rest
                    "proxy-authorization: basic bwu6c2vjcmv0",
                    "authorization: basic ywrhonbac3m=",
                ][..],
            ),
            (
                "https://server.test/mcp",
                "HTTP/1.1 403 No\r\n\r\n",
                &["connect server.test:443 http/1.1"],
            ),
        ] {
            let client = client(&proxy, url).unwrap();
            let (answered, request) = tokio::join!(send(&client), one_request(&listener, answer));
            assert_eq!(answered.is_ok(), answer == ok);
            match answered {
                Ok(answered) => {
                    let body = answered.into_body().collect().await.unwrap();
                    assert_eq!(body.to_bytes(), "ok");
                }
                Err(error) => assert!(matches!(error, SendError::Connect(..)), "{error:?}"),
            }
            for line in seen {
                assert!(
                    request.lines().any(|sent| sent == *line),
                    "{line}: {request}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_proxy_that_cannot_be_used_is_named_without_its_credentials() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let proxy = format!("http://me:secret@{address}");
        for url in ["http://server.test/mcp", "https://server.test/mcp"] {
            let failed = send(&client(&proxy, url).unwrap()).await;
            let error = unsent(&failed.err().unwrap(), false).into_tool_error();
            let message = error.message();
            let named = format!("the proxy http://{address}");
            assert!(message.contains(&named), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        let refused = client("socks5://127.0.0.1:1", "http://server.test/mcp");
        assert!(refused.err().unwrap().contains("socks5"));
    }

    #[test]
    fn what_is_configured_comes_before_what_follows_from_the_address() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer t"));
        let url = Url::parse("http://ada@server.test:8080/mcp").unwrap();
        let none = Matcher::builder().build();
        let client = Client::new(&none, url, headers, LONG, Connections::new(8)).unwrap();
        assert_eq!(client.headers[AUTHORIZATION], "Bearer t");
        assert_eq!(client.headers[HOST], "server.test:8080");
    }
}
