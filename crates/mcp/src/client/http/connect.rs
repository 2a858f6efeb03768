//! Connects to the server, directly or through a proxy that the environment names.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{BoxFuture, redact};
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

/// The error of the layers below.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Tls = HttpsConnector<HttpConnector>;

/// The interval of TCP keep-alive probes, so that a call does not wait for ever on a dead
/// connection.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// The number of unanswered probes that end the connection.
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// How long what was sent may stay unacknowledged.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// A request up to this size is copied into one piece: a plain write of it costs the system less
/// than a vectored one.
const COPIED: usize = 2048;

/// Counts the connections to one server.
#[derive(Debug, Clone)]
pub(in crate::client) struct Connections {
    free: Arc<Semaphore>,
    max: usize,
}

impl Connections {
    pub(in crate::client) fn new(max: usize) -> Self {
        let max = max.clamp(1, Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(max));
        Self { free, max }
    }
}

/// Makes connections to one server.
#[derive(Clone)]
pub(super) struct Connect {
    way: Way,
    /// The proxy, in words.
    proxy: Option<Arc<str>>,
    timeout: Duration,
    connections: Connections,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// All permitted connections, this many, are in use.
    NoneFree(usize),
    /// Connecting failed, through this proxy if there is one.
    Failed(BoxError, Option<Arc<str>>),
}

#[derive(Clone)]
enum Way {
    Straight(Tls),
    /// Plain HTTP: the proxy gets the request itself.
    Forwarded(Tls, Uri),
    /// TLS: the proxy gets the name of the server and passes bytes on.
    Tunnelled(HttpsConnector<Tunnel<Tls>>),
}

impl Connect {
    /// Creates a connector. `timeout` covers name resolution, connection, proxy and TLS together.
    ///
    /// # Errors
    ///
    /// A proxy of an unsupported kind.
    pub(super) fn new(
        server: &Uri,
        proxies: &Matcher,
        tls: ClientConfig,
        timeout: Duration,
        connections: Connections,
    ) -> Result<(Self, Option<HeaderValue>), String> {
        let by = |way, proxy| Self {
            way,
            proxy,
            timeout,
            connections,
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
        let straight = Tls::from((tcp, tls.clone()));
        // this machine is not behind a proxy
        let proxy = proxies.intercept(server).filter(|_| !is_loopback(server));
        let Some(proxy) = proxy else {
            return Ok((by(Way::Straight(straight), None), None));
        };
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            return Err(format!(
                "the proxy {} cannot be used: only http and https proxies are",
                redact::url(&proxy.uri().to_string())
            ));
        }
        let credentials = proxy.basic_auth().cloned();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let named = match variable(server.scheme_str(), is_set) {
            Some(variable) => format!(", which {variable} names"),
            None => String::new(),
        };
        let shown = redact::url(&proxy.uri().to_string());
        let words = Some(format!("the proxy {shown}{named}").into());
        if server.scheme_str() != Some("https") {
            let way = Way::Forwarded(straight, proxy.uri().clone());
            return Ok((by(way, words), credentials));
        }
        let way = Way::Tunnelled(HttpsConnector::from((tunnel(&proxy, straight), tls)));
        Ok((by(way, words), None))
    }
}

/// Returns the variable of the environment that names the proxy, in the order in which they are
/// read.
fn variable(scheme: Option<&str>, is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
    let own = match scheme {
        Some("https") => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    let names = own.into_iter().chain(["ALL_PROXY", "all_proxy"]);
    names.into_iter().find(|name| is_set(name))
}

fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_end_matches('.');
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = host.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

fn tunnel(proxy: &Intercept, to_proxy: Tls) -> Tunnel<Tls> {
    let tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

impl Connect {
    /// Returns `true` if requests go to a proxy, which needs the server in each.
    pub(super) fn is_forwarded(&self) -> bool {
        matches!(self.way, Way::Forwarded(..))
    }

    /// Opens a connection, once a permit is free.
    pub(super) fn open(&self, server: Uri) -> BoxFuture<'static, Result<Wire, ConnectError>> {
        let Self {
            way,
            proxy,
            timeout,
            connections: Connections { free, max },
        } = self.clone();
        Box::pin(async move {
            let place = tokio::time::timeout(timeout, free.acquire_owned()).await;
            let Ok(Ok(place)) = place else {
                return Err(ConnectError::NoneFree(max)); // the semaphore is never closed
            };
            let wire = tokio::time::timeout(timeout, way.go(server))
                .await
                .unwrap_or_else(|_| Err(format!("not there within {timeout:?}").into()))
                .map_err(|cause| ConnectError::Failed(cause, proxy))?;
            Ok(Wire {
                _place: Some(place),
                ..wire
            })
        })
    }
}

impl Way {
    async fn go(self, server: Uri) -> Result<Wire, BoxError> {
        match self {
            Self::Straight(mut tls) => tls.call(server).await.map(Wire::new),
            Self::Forwarded(mut tls, proxy) => tls.call(proxy).await.map(Wire::new),
            Self::Tunnelled(mut tunnel) => tunnel.call(server).await.map(Wire::new),
        }
    }
}

/// Bytes in both directions, encrypted or not.
pub(super) trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

/// The bytes of one connection.
pub(super) struct Wire {
    io: Box<dyn Io>,
    /// Its permit among the connections to the server.
    _place: Option<OwnedSemaphorePermit>,
}

impl Wire {
    pub(super) fn new(io: impl Io + 'static) -> Self {
        Self {
            io: Box::new(io),
            _place: None,
        }
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = bufs.iter().map(|buf| buf.len()).sum();
        if bytes > COPIED {
            return Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        }
        let mut copy = Vec::with_capacity(bytes);
        bufs.iter().for_each(|buf| copy.extend_from_slice(buf));
        Pin::new(&mut self.io).poll_write(cx, &copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_that_names_the_proxy_is_known() {
        for (scheme, set, want) in [
            (
                "https",
                &["HTTPS_PROXY", "ALL_PROXY"][..],
                Some("HTTPS_PROXY"),
            ),
            ("https", &["HTTP_PROXY", "https_proxy"], Some("https_proxy")),
            ("http", &["HTTPS_PROXY", "all_proxy"], Some("all_proxy")),
            ("http", &["HTTP_PROXY"], Some("HTTP_PROXY")),
            ("http", &[], None),
        ] {
            assert_eq!(variable(Some(scheme), |name| set.contains(&name)), want);
        }
    }

    #[test]
    fn loopback_addresses_have_no_proxy() {
        for (server, want) in [
            ("http://127.0.0.1:3000/mcp", true),
            ("http://127.1.2.3/mcp", true),
            ("http://[::1]:3000/mcp", true),
            ("http://[::ffff:127.0.0.1]/mcp", true),
            ("http://LOCALHOST/mcp", true),
            ("http://localhost./mcp", true),
            ("http://app.localhost:8080/mcp", true),
            ("http://localhost.example/mcp", false),
            ("http://10.0.0.1/mcp", false),
            ("https://server.test/mcp", false),
        ] {
            assert_eq!(is_loopback(&server.parse().unwrap()), want, "{server}");
        }
    }
}
