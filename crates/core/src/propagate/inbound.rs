//! The request behind a call.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::{ClientInfo, TraceContext};
use crate::SessionId;

/// What carries requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// Standard input and output, or another pair of pipes.
    Pipe,
    /// TCP, and HTTP on it.
    Tcp,
}

impl Transport {
    /// Returns the value of `network.transport` in OpenTelemetry's conventions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Tcp => "tcp",
        }
    }
}

/// What a face knows of the MCP request that a call came as. Spans tell of it; nothing decides by it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inbound {
    /// What carried the request.
    pub transport: Transport,
    /// The JSON-RPC id.
    pub request: Option<RequestName>,
    /// The revision of MCP it was made under, if it is known.
    pub protocol_version: Option<&'static str>,
    /// The session, of a client that has one.
    pub session: Option<SessionId>,
    /// The version of HTTP, as in `1.1`, where it came by HTTP.
    pub http_version: Option<&'static str>,
    /// Where it came from, if that is known.
    pub client: Option<SocketAddr>,
    /// How the client introduced itself, if it did.
    pub client_info: Option<Arc<ClientInfo>>,
    /// The trace context of the HTTP request, where the message in it has one of its own.
    pub beside: Option<TraceContext>,
}

impl Inbound {
    /// Starts with what every request has.
    #[must_use]
    pub const fn new(transport: Transport) -> Self {
        Self {
            transport,
            request: None,
            protocol_version: None,
            session: None,
            http_version: None,
            client: None,
            client_info: None,
            beside: None,
        }
    }
}

/// The id of a JSON-RPC request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no other ids")]
pub enum RequestName {
    /// A number; one that is no natural number is a text.
    Number(u64),
    /// A text, without its quotation marks.
    Text(Box<str>),
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}
