//! What is known of the server a request goes to.

use std::sync::Arc;

use http::HeaderValue;
use tollgate_core::{PeerObserver, PeerSession, PeerSide};

use crate::observed::SessionTimer;
use crate::upstream::ask::modern_context;
use crate::upstream::info::ServerInfo;
use crate::wire::Era;

/// A server that has been greeted.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<ServerInfo>,
    /// `MCP-Protocol-Version` of each request.
    pub(super) version: HeaderValue,
    /// `Mcp-Session-Id` of each request, if the server gave one.
    pub(super) id: Option<HeaderValue>,
    /// What each request carries in `_meta`; nothing for legacy servers.
    pub(super) context: Option<Vec<u8>>,
    /// Tells how long it lasted: of legacy servers that gave it an id, if anybody wants to know.
    timer: Option<SessionTimer>,
}

impl Session {
    pub(super) fn new(info: ServerInfo, id: Option<HeaderValue>, client_info: &[u8]) -> Self {
        // a revision that was agreed on is one of the known ones, so it can travel in a header
        let version = HeaderValue::from_str(&info.version)
            .unwrap_or_else(|_| HeaderValue::from_static(crate::wire::LATEST));
        let context = (info.era == Era::Modern).then(|| modern_context(client_info));
        Self {
            info: Arc::new(info),
            version,
            id,
            context,
            timer: None,
        }
    }

    /// Sets who is told how long it lasted, if it is one.
    pub(super) fn observed_by(mut self, observer: Option<&Arc<dyn PeerObserver>>) -> Self {
        let session = PeerSession::new(PeerSide::Client, "tcp");
        let observer = observer.filter(|_| self.id.is_some());
        self.timer = observer.map(|observer| SessionTimer::begin(observer.clone(), session));
        self
    }

    /// Returns what a probe is sent under: modern, and nothing known yet.
    pub(super) fn probe(client_info: &[u8]) -> Self {
        let info = ServerInfo {
            era: Era::Modern,
            version: crate::wire::LATEST.to_owned(),
            implementation: None,
            capabilities: bytes::Bytes::from_static(b"{}"),
            instructions: None,
            tools_list_changed: false,
            takes_idempotency_keys: false,
        };
        Self::new(info, None, client_info)
    }

    /// Says whether the session is one the server may forget.
    pub(super) fn can_be_forgotten(&self) -> bool {
        self.id.is_some()
    }
}
