//! The options of the HTTP endpoint.

use std::net::IpAddr;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::host::HostPattern;
use super::origin::OriginPattern;

/// The options of the HTTP endpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Which hosts are served. Default: [`HostPattern::Loopback`].
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
    /// Refuses new calls, sessions and subscriptions with 503 when fired. Calls in flight, and open
    /// streams and sessions, go on. Default: never fires.
    pub drain: CancellationToken,
    /// Ends open notification streams when fired. Calls go on. Default: never fires.
    pub shutdown: CancellationToken,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allowed_hosts: vec![HostPattern::Loopback],
            allowed_origins: OriginPattern::loopback(),
            max_body: 4 * 1024 * 1024,
            max_bodies: 64 * 1024 * 1024,
            body_timeout: Duration::from_secs(60),
            max_sessions: 10_000,
            max_sessions_per_client: 1_000,
            proxies: Vec::new(),
            session_idle: Duration::from_secs(30 * 60),
            keep_alive: Duration::from_secs(15),
            drain: CancellationToken::new(),
            shutdown: CancellationToken::new(),
        }
    }
}
