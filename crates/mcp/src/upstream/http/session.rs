//! What is known of the server a request goes to.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use tollgate_core::{PeerObserver, PeerSession, PeerSide};

use crate::observed::SessionTimer;
use crate::upstream::ask::modern_context;
use crate::upstream::info::ServerInfo;
use crate::wire::{Era, header};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// A server that has been greeted.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<ServerInfo>,
    /// What every request carries: the client's own headers, `MCP-Protocol-Version`, and
    /// `Mcp-Session-Id` if the server gave one.
    headers: HeaderMap,
    /// What each request carries in `_meta`; nothing for legacy servers.
    pub(super) context: Option<Vec<u8>>,
    /// Tells how long it lasted: of legacy servers that gave it an id, if anybody wants to know.
    timer: Option<SessionTimer>,
}

impl Session {
    /// Takes what the server said of itself, its name for the session, and the headers of the client.
    pub(super) fn new(
        info: ServerInfo,
        id: Option<HeaderValue>,
        mut headers: HeaderMap,
        client_info: &[u8],
    ) -> Self {
        // a revision that was agreed on is one of the known ones, so it can travel in a header
        let version = HeaderValue::from_str(&info.version)
            .unwrap_or_else(|_| HeaderValue::from_static(crate::wire::LATEST));
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, JSON_OR_EVENTS);
        headers.insert(header::PROTOCOL_VERSION, version);
        if let Some(id) = id {
            headers.insert(header::SESSION_ID, id);
        }
        let context = (info.era == Era::Modern).then(|| modern_context(client_info));
        Self {
            info: Arc::new(info),
            headers,
            context,
            timer: None,
        }
    }

    /// Sets who is told how long it lasted, if it is one.
    pub(super) fn observed_by(mut self, observer: Option<&Arc<dyn PeerObserver>>) -> Self {
        let session = PeerSession::new(PeerSide::Client, "tcp");
        let observer = observer.filter(|_| self.id().is_some());
        self.timer = observer.map(|observer| SessionTimer::begin(observer.clone(), session));
        self
    }

    /// Returns the id that a legacy server gave, if it is text.
    pub(super) fn id(&self) -> Option<&str> {
        self.headers.get(header::SESSION_ID)?.to_str().ok()
    }

    /// Returns the headers of a message to the server.
    pub(super) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// Returns the headers of a request without a message.
    pub(super) fn bare_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.remove(CONTENT_TYPE);
        headers.remove(ACCEPT);
        headers
    }

    /// Returns what a probe is sent under: modern, and nothing known yet.
    pub(super) fn probe(headers: HeaderMap, client_info: &[u8]) -> Self {
        let info = ServerInfo {
            era: Era::Modern,
            version: crate::wire::LATEST.to_owned(),
            implementation: None,
            capabilities: bytes::Bytes::from_static(b"{}"),
            instructions: None,
            tools_list_changed: false,
            takes_idempotency_keys: false,
            opens_sessions: false,
            names_legacy: false,
        };
        Self::new(info, None, headers, client_info)
    }

    /// Says whether the session is one the server may forget.
    pub(super) fn can_be_forgotten(&self) -> bool {
        self.headers.contains_key(header::SESSION_ID)
    }
}
