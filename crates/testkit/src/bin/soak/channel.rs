//! A client's way to a gateway, whatever it is made of.

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use callward_testkit::hostile::Era;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::Http;
use crate::pipe::Pipes;

pub(crate) const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// The longest a gateway may take to answer: more than its own deadline for a call.
const LONGEST: Duration = Duration::from_secs(120);

/// Returns the two eras in turn.
pub(crate) const fn era(number: u64) -> Era {
    match number.is_multiple_of(2) {
        true => Era::Modern,
        false => Era::Legacy,
    }
}

/// Adds what a request says of its client.
pub(crate) fn with_client(era: Era, mut params: Value) -> Value {
    if era == Era::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    params
}

/// Returns the method of a server's first request, and the answer to it.
pub(crate) fn greeting(era: Era) -> (&'static str, Value) {
    let capabilities = json!({"tools": {"listChanged": era == Era::Legacy}});
    match era {
        Era::Legacy => (
            "initialize",
            json!({"protocolVersion": LEGACY, "capabilities": capabilities,
                "serverInfo": {"name": "soak", "version": "1"}}),
        ),
        Era::Modern => (
            "server/discover",
            json!({"resultType": "complete", "supportedVersions": [MODERN],
                "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}),
        ),
    }
}

/// Returns what a client of the legacy era begins with.
pub(crate) fn initialize() -> Value {
    json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "soak", "version": "1"}})
}

/// One client's way to a gateway.
pub(crate) enum Channel {
    Http(Http),
    /// Shared by all clients of the gateway.
    Pipe(Arc<Pipes>),
}

impl Channel {
    /// Sends a request; `None` if the client left after a time, if one is given.
    ///
    /// # Errors
    ///
    /// The connection or the gateway ended, or, as [`io::ErrorKind::TimedOut`], there was no
    /// answer.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Option<Value>> {
        let channel = match self {
            Self::Http(_) => "HTTP",
            Self::Pipe(_) => "a pipe",
        };
        let asked = format!("{method} {params} over {channel}");
        let answered = async {
            match self {
                Self::Http(http) => http.request(method, params, leaves).await,
                Self::Pipe(pipes) => pipes.request(method, params, leaves).await,
            }
        };
        let answered = timeout(LONGEST, answered).await;
        answered.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, asked)))
    }

    /// Returns the connection of a client that has what it keeps at servers for itself.
    pub(crate) fn with_sessions(&mut self) -> Option<&mut Http> {
        match self {
            Self::Http(http) => (http.era == Era::Legacy).then_some(http),
            Self::Pipe(_) => None,
        }
    }
}
