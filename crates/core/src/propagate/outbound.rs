//! The requests that an attempt is sent as.

use std::fmt;
use std::sync::Arc;

use super::{TraceContext, Transport};

/// The MCP request that an attempt is sent as, just before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outbound<'a> {
    /// What carries it.
    pub transport: Transport,
    /// The JSON-RPC id.
    pub request: u64,
    /// The revision of MCP that the server speaks.
    pub protocol_version: Option<&'a str>,
    /// The session, at a server that gave one.
    pub session: Option<&'a str>,
    /// The server's name or address, where it has one.
    pub address: Option<&'a str>,
    /// The server's port, where it has one.
    pub port: Option<u16>,
    /// The version of HTTP, as in `1.1`, where it goes by HTTP.
    pub http_version: Option<&'static str>,
}

impl Outbound<'_> {
    /// Starts with what every request has.
    pub const fn new(transport: Transport, request: u64) -> Self {
        Self {
            transport,
            request,
            protocol_version: None,
            session: None,
            address: None,
            port: None,
            http_version: None,
        }
    }
}

/// A watcher of an attempt, notified when a request is sent for it.
pub trait SendWatch: fmt::Debug + Send + Sync {
    /// Takes what is known of a request that is about to be sent, and returns the trace context it
    /// is to carry; `None` if it is to carry that of the call. A leaf that sends again calls it
    /// again.
    fn sends(&self, request: &Outbound<'_>) -> Option<TraceContext>;
}

/// A [`SendWatch`] on its way with an attempt.
pub type Watch = Arc<dyn SendWatch>;
