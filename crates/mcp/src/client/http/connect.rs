//! Connects to the server, directly or through a proxy that the environment names.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{BoxFuture, redact};
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
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

/// The bytes of one connection, in both directions, encrypted or not.
pub(super) type Wire = Box<dyn Io>;

pub(super) trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

type Dial = Box<dyn Fn() -> BoxFuture<'static, Result<Wire, BoxError>> + Send + Sync>;

/// Makes connections to one server.
pub(super) struct Connect {
    dial: Dial,
    /// Whether requests go to a proxy, which needs the server in each.
    pub(super) is_forwarded: bool,
    /// What such a proxy is sent.
    pub(super) credentials: Option<HeaderValue>,
    /// The proxy, in words.
    proxy: Option<Arc<str>>,
    timeout: Duration,
    connections: Connections,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum SendError {
    /// All permitted connections, this many, are in use.
    NoneFree(usize),
    /// Connecting failed, through this proxy if there is one.
    Connect(BoxError, Option<Arc<str>>),
    /// The connection broke, or closed, before an answer.
    Broken(BoxError),
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
    ) -> Result<Self, String> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
        tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
        let straight = Tls::from((tcp, tls.clone()));
        let mut connect = Self {
            dial: dial(straight.clone(), server.clone()),
            is_forwarded: false,
            credentials: None,
            proxy: None,
            timeout,
            connections,
        };
        // this machine is not behind a proxy
        let proxy = proxies.intercept(server).filter(|_| !is_loopback(server));
        let Some(proxy) = proxy else {
            return Ok(connect);
        };
        let shown = redact::url(&proxy.uri().to_string());
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            return Err(format!(
                "the proxy {shown} cannot be used: only http and https proxies are"
            ));
        }
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let named = match variable(server.scheme_str(), is_set) {
            Some(variable) => format!(", which {variable} names"),
            None => String::new(),
        };
        let credentials = proxy.basic_auth().cloned();
        if server.scheme_str() == Some("https") {
            // the proxy gets the name of the server and passes bytes on
            let mut tunnel = Tunnel::new(proxy.uri().clone(), straight);
            if let Some(credentials) = credentials {
                tunnel = tunnel.with_auth(credentials);
            }
            connect.dial = dial(HttpsConnector::from((tunnel, tls)), server.clone());
        } else {
            connect.is_forwarded = true;
            connect.credentials = credentials;
            connect.dial = dial(straight, proxy.uri().clone());
        }
        connect.proxy = Some(format!("the proxy {shown}{named}").into());
        Ok(connect)
    }

    /// Opens a connection, once a permit is free.
    pub(super) fn open(
        &self,
    ) -> BoxFuture<'static, Result<(Wire, OwnedSemaphorePermit), SendError>> {
        let Connections { free, max } = self.connections.clone();
        let (dialled, proxy, timeout) = ((self.dial)(), self.proxy.clone(), self.timeout);
        Box::pin(async move {
            let permit = tokio::time::timeout(timeout, free.acquire_owned()).await;
            let Ok(Ok(permit)) = permit else {
                return Err(SendError::NoneFree(max)); // the semaphore is never closed
            };
            let wire = tokio::time::timeout(timeout, dialled)
                .await
                .unwrap_or_else(|_| Err(format!("not there within {timeout:?}").into()))
                .map_err(|cause| SendError::Connect(cause, proxy))?;
            Ok((wire, permit))
        })
    }
}

/// Returns how to connect to an address.
fn dial<C>(connector: C, to: Uri) -> Dial
where
    C: Service<Uri, Response: Io + 'static, Error: Into<BoxError>, Future: Send>,
    C: Clone + Send + Sync + 'static,
{
    Box::new(move || {
        let (mut connector, to) = (connector.clone(), to.clone());
        Box::pin(async move {
            let io = connector.call(to).await.map_err(Into::into)?;
            Ok(Box::new(io) as Wire)
        })
    })
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
            ("http", &[], None),
        ] {
            assert_eq!(variable(Some(scheme), |name| set.contains(&name)), want);
        }
    }

    #[test]
    fn loopback_addresses_have_no_proxy() {
        for (server, want) in [
            ("http://127.1.2.3/mcp", true),
            ("http://[::1]:3000/mcp", true),
            ("http://[::ffff:127.0.0.1]/mcp", true),
            ("http://LOCALHOST/mcp", true),
            ("http://localhost./mcp", true),
            ("http://app.localhost:8080/mcp", true),
            ("http://localhost.example/mcp", false),
            ("https://server.test/mcp", false),
        ] {
            assert_eq!(is_loopback(&server.parse().unwrap()), want, "{server}");
        }
    }
}
