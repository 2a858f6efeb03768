//! The request behind a call.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{ClientInfo, TraceContext};
use crate::SessionId;

words! {
    /// What carries requests.
    #[non_exhaustive]
    Transport {
        /// Standard input and output, or another pair of pipes.
        Pipe = "pipe",
        /// TCP, and HTTP on it.
        Tcp = "tcp",
    }
}

/// The MCP request that a call came as. Spans record it.
#[derive(Debug)]
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
    /// [`SENT`], [`LEFT`] or both.
    state: AtomicU8,
}

/// The call was sent, and may have an effect.
const SENT: u8 = 1;
/// The client does not wait for the answer any more.
const LEFT: u8 = 2;

impl Inbound {
    /// Starts with what every request has.
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
            state: AtomicU8::new(0),
        }
    }

    /// Notes that a call that may have an effect is about to be sent. Returns `false` if its client
    /// has left: then it must not be sent.
    pub fn may_send(&self) -> bool {
        self.state.fetch_or(SENT, Ordering::SeqCst) & LEFT == 0
    }

    /// Notes that the client does not wait for the answer any more. Returns `true` if the call was
    /// sent and may have an effect: the server's answer then shows the effect.
    pub fn client_left(&self) -> bool {
        self.state.fetch_or(LEFT, Ordering::SeqCst) & SENT != 0
    }
}

/// The id of a JSON-RPC request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no other ids")]
pub enum RequestName {
    /// A number; one that is not a natural number is a text.
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
