//! The state of the server that a request goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{PeerObserver, PeerSession, PeerSide};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::client::ask::Style;
use crate::client::builder::Options;
use crate::client::info::ServerInfo;
use crate::observed::SessionTimer;
use crate::wire::{Era, LATEST, header};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// A server that has been greeted.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<ServerInfo>,
    /// What every request carries: the client's own headers, `MCP-Protocol-Version`, and
    /// `Mcp-Session-Id` if the server gave one.
    headers: HeaderMap,
    pub(super) style: Style,
    /// The server has said that it does not know this session.
    lost: AtomicBool,
    /// The server has said that it has no stream of its own.
    has_no_stream: AtomicBool,
    /// When the server last answered in it, in milliseconds since `began`.
    answered: AtomicU64,
    began: Instant,
    /// Reports how long it lasted: of legacy servers that gave it an id, if an observer is set.
    timer: Option<SessionTimer>,
}

impl Session {
    /// Creates it from the server's description, its session id, and the headers of the client.
    pub(super) fn new(
        info: ServerInfo,
        id: Option<HeaderValue>,
        mut headers: HeaderMap,
        options: &Options,
    ) -> Self {
        // a revision that was agreed on is one of the known ones, so it can travel in a header
        let version = HeaderValue::from_str(&info.version)
            .unwrap_or_else(|_| HeaderValue::from_static(LATEST));
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, JSON_OR_EVENTS);
        headers.insert(header::PROTOCOL_VERSION, version);
        if let Some(id) = id {
            headers.insert(header::SESSION_ID, id);
        }
        Self {
            style: options.style(&info),
            info: Arc::new(info),
            headers,
            lost: AtomicBool::new(false),
            has_no_stream: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            began: Instant::now(),
            timer: None,
        }
    }

    /// Sets the observer of its duration, if it is a session.
    pub(super) fn observed_by(mut self, observer: Option<&Arc<dyn PeerObserver>>) -> Self {
        let session = PeerSession {
            side: PeerSide::Client,
            transport: "tcp",
        };
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

    /// Takes note that the server does not know it any more.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes note that the server has refused a stream of its own.
    pub(super) fn refuse_stream(&self) {
        self.has_no_stream.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if it may be worth to listen: a legacy server may announce changes, and make
    /// requests, on a stream of its own; a modern one states if it announces changes.
    pub(super) fn may_have_stream(&self) -> bool {
        let may = self.info.era == Era::Legacy || self.info.tools_list_changed;
        may && !self.has_no_stream.load(Ordering::Relaxed)
    }

    /// Takes note that the server has answered in it.
    pub(super) fn answered(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.answered.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns how long ago the server last answered in it.
    pub(super) fn idle(&self) -> Duration {
        let answered = Duration::from_millis(self.answered.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(answered)
    }

    /// Returns `true` if the session is one the server may forget.
    pub(super) fn can_be_forgotten(&self) -> bool {
        self.headers.contains_key(header::SESSION_ID)
    }
}

/// A session for tests that connect to no server.
#[cfg(test)]
pub(super) fn unconnected() -> Session {
    let info = ServerInfo::new(LATEST);
    Session::new(info, None, HeaderMap::new(), &Options::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_idle_since_its_last_answer() {
        let session = unconnected();
        let second = Duration::from_secs(1);
        tokio::time::advance(second * 40).await;
        assert_eq!(session.idle(), second * 40);
        session.answered();
        tokio::time::advance(second * 2).await;
        assert_eq!(session.idle(), second * 2);
    }
}
