//! How the HTTP endpoint is set up.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::host::HostPattern;
use super::origin::OriginPattern;

/// How the HTTP endpoint is set up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Checked when it is set: the router takes no other.
    path: String,
    /// Which hosts are served. Default: [`HostPattern::loopback`].
    pub allowed_hosts: Vec<HostPattern>,
    /// Which `Origin` headers are served; a request without one is not from a browser and passes.
    /// Default: the loopback origins, on any port.
    pub allowed_origins: Vec<OriginPattern>,
    /// The longest request body, in bytes. Default: 4 MiB.
    pub max_body: usize,
    /// How many bytes of request bodies may be held at a time, of each the first 64 KiB not
    /// counted. Default: 64 MiB.
    pub max_bodies: usize,
    /// How long a request body may take to come. Default: 60 s.
    pub body_timeout: Duration,
    /// How many legacy sessions may live at a time. Default: 10,000.
    pub max_sessions: usize,
    /// How many of them one principal may have, or one address whose requests are not
    /// authenticated. Default: 1,000.
    pub max_sessions_per_client: usize,
    /// Addresses of proxies, behind which there are many clients: their sessions are not counted by
    /// address. Default: none.
    pub proxies: Vec<IpAddr>,
    /// How long a legacy session may go unused before it may be forgotten. Default: 30 minutes.
    pub session_idle: Duration,
    /// How often a silent stream is kept alive by a comment. Default: 15 s.
    pub keep_alive: Duration,
    /// Ends open notification streams when fired, so that the server can drain. Calls go on.
    /// Default: never fires.
    pub shutdown: CancellationToken,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            allowed_hosts: vec![HostPattern::loopback()],
            allowed_origins: OriginPattern::loopback(),
            max_body: 4 * 1024 * 1024,
            max_bodies: 64 * 1024 * 1024,
            body_timeout: Duration::from_secs(60),
            max_sessions: 10_000,
            max_sessions_per_client: 1_000,
            proxies: Vec::new(),
            session_idle: Duration::from_secs(30 * 60),
            keep_alive: Duration::from_secs(15),
            shutdown: CancellationToken::new(),
        }
    }
}

impl HttpOptions {
    /// Returns the path of the endpoint. Default: `/mcp`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sets the path of the endpoint.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] unless it begins with `/` and has nothing but ASCII letters, digits and
    /// `/-_.~`.
    pub fn with_path(mut self, path: impl Into<String>) -> Result<Self, InvalidOption> {
        let path = path.into();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
        if !path.starts_with('/') || !path.bytes().all(fits) {
            return Err(InvalidOption {
                text: path,
                expected: "a path that begins with `/`, of letters, digits and `/-_.~`",
            });
        }
        self.path = path;
        Ok(self)
    }

    /// Sets which hosts are served.
    #[must_use]
    pub fn with_allowed_hosts(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        self.allowed_hosts = hosts.into_iter().collect();
        self
    }

    /// Sets which `Origin` headers are served.
    #[must_use]
    pub fn with_allowed_origins(
        mut self,
        origins: impl IntoIterator<Item = OriginPattern>,
    ) -> Self {
        self.allowed_origins = origins.into_iter().collect();
        self
    }

    /// Sets the longest request body, in bytes.
    #[must_use]
    pub fn with_max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets how many bytes of request bodies may be held, and how long one may take to come.
    #[must_use]
    pub fn with_bodies(mut self, max: usize, timeout: Duration) -> Self {
        self.max_bodies = max;
        self.body_timeout = timeout;
        self
    }

    /// Sets how many legacy sessions may live, and how long one may go unused.
    #[must_use]
    pub fn with_sessions(mut self, max: usize, idle: Duration) -> Self {
        self.max_sessions = max;
        self.session_idle = idle;
        self
    }

    /// Sets how many legacy sessions one client may have, and which addresses are proxies of many.
    #[must_use]
    pub fn with_sessions_per_client(mut self, max: usize, proxies: Vec<IpAddr>) -> Self {
        self.max_sessions_per_client = max;
        self.proxies = proxies;
        self
    }

    /// Sets how often a silent stream is kept alive.
    #[must_use]
    pub fn with_keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets what ends open notification streams.
    #[must_use]
    pub fn with_shutdown(mut self, shutdown: CancellationToken) -> Self {
        self.shutdown = shutdown;
        self
    }
}

/// A text that is not what an option needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOption {
    pub(super) text: String,
    pub(super) expected: &'static str,
}

impl fmt::Display for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.text, self.expected)
    }
}

impl std::error::Error for InvalidOption {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_the_router_would_not_take_is_refused_when_it_is_set() {
        for path in ["/", "/mcp", "/a/b.c-d_e~1"] {
            assert_eq!(HttpOptions::default().with_path(path).unwrap().path(), path);
        }
        for path in ["", "mcp", "/{x}", "/a b", "/*", "/ü"] {
            assert!(HttpOptions::default().with_path(path).is_err(), "{path}");
        }
    }
}
