//! A client's way to a gateway, whatever it is made of.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::Http;
use crate::pipe::Pipes;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// The longest a gateway may take to answer: more than its own deadline for a call.
const LONGEST: Duration = Duration::from_secs(120);

/// Which revision of the protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// Returns the two in turn.
    pub(crate) const fn of(number: u64) -> Self {
        if number.is_multiple_of(2) {
            Self::Modern
        } else {
            Self::Legacy
        }
    }

    /// Adds what a request says of its client.
    pub(crate) fn params(self, mut params: Value) -> Value {
        if self == Self::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        params
    }

    /// Returns the method of a server's first request, and the answer to it.
    pub(crate) fn greeting(self) -> (&'static str, Value) {
        let capabilities = json!({"tools": {"listChanged": self == Self::Legacy}});
        match self {
            Self::Legacy => (
                "initialize",
                json!({"protocolVersion": LEGACY, "capabilities": capabilities,
                    "serverInfo": {"name": "soak", "version": "1"}}),
            ),
            Self::Modern => (
                "server/discover",
                json!({"resultType": "complete", "supportedVersions": [MODERN],
                    "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}),
            ),
        }
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
        match timeout(LONGEST, answered).await {
            Ok(answered) => answered,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, asked)),
        }
    }

    /// Returns the session, where the way has one.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Http(http) => http.session.as_deref(),
            Self::Pipe(_) => None,
        }
    }

    /// Returns `true` if the client has what it keeps at servers for itself.
    pub(crate) const fn has_sessions(&self) -> bool {
        match self {
            Self::Http(http) => http.has_sessions(),
            Self::Pipe(_) => false,
        }
    }

    pub(crate) async fn leave(&mut self) {
        if let Self::Http(http) = self {
            http.leave().await;
        }
    }
}
