//! The state of the server that a request goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Uri};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::resume::Resume;
use super::sse::Stream;
use crate::client::ask::Style;
use crate::client::info::ServerInfo;
use crate::client::options::UpstreamOptions;
use crate::observed::SessionTimer;
use crate::wire::{Era, LATEST, header};

/// How long the first call of a client that can be asked waits for the server's own stream.
const STREAM_WAIT: Duration = Duration::from_secs(1);

/// A server that has been greeted.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<ServerInfo>,
    /// What every request carries: the client's own headers, `MCP-Protocol-Version`, and
    /// `Mcp-Session-Id` if the server gave one.
    pub(super) headers: HeaderMap,
    pub(super) style: Style,
    /// The server has said that it has no stream of its own.
    pub(super) has_no_stream: AtomicBool,
    /// Fires when the first attempt to open that stream is over.
    pub(super) stream_tried: CancellationToken,
    /// How the server's own stream can be resumed.
    pub(super) resume: Mutex<Resume>,
    /// When the server last answered in it; nothing if it may have been replaced since.
    answered: Mutex<Option<Instant>>,
    /// Reports how long it lasted: of legacy servers that gave it an id, if an observer is set.
    pub(super) timer: Option<SessionTimer>,
    /// The stream of a server of 2024-11-05, on which its answers come.
    pub(super) stream: Option<Arc<Stream>>,
}

impl Session {
    /// Creates it from the server's description, its session id, and the headers of the client.
    pub(super) fn new(
        info: ServerInfo,
        id: Option<HeaderValue>,
        mut headers: HeaderMap,
        options: &UpstreamOptions,
    ) -> Self {
        // a revision that was agreed on is one of the known ones, so it can travel in a header
        let version = HeaderValue::from_str(&info.version)
            .unwrap_or_else(|_| HeaderValue::from_static(LATEST));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        headers.insert(&header::PROTOCOL_VERSION, version);
        if let Some(id) = id {
            headers.insert(&header::SESSION_ID, id);
        }
        Self {
            style: options.style(&info),
            info: Arc::new(info),
            headers,
            has_no_stream: AtomicBool::new(false),
            stream_tried: CancellationToken::new(),
            resume: Mutex::default(),
            answered: Mutex::new(Some(Instant::now())),
            timer: None,
            stream: None,
        }
    }

    /// Returns the id that a legacy server gave, if it is text.
    pub(super) fn id(&self) -> Option<&str> {
        self.headers.get(&header::SESSION_ID)?.to_str().ok()
    }

    /// Returns where its messages go, if not to the configured address.
    pub(super) fn target(&self) -> Option<&Uri> {
        self.stream.as_deref().map(Stream::target)
    }

    /// Returns the headers of a request without a message.
    pub(super) fn bare_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.remove(CONTENT_TYPE);
        headers.remove(ACCEPT);
        headers
    }

    /// Returns `true` if it may be worth to listen: a legacy server may announce changes, and make
    /// requests, on a stream of its own; a modern one states if it announces changes.
    pub(super) fn may_have_stream(&self) -> bool {
        let may = self.info.era == Era::Legacy || !self.info.announces.is_empty();
        may && self.stream.is_none() && !self.has_no_stream.load(Ordering::Relaxed)
    }

    /// Waits until a session of 2024-11-05 ends; any other has no such end.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let closed = self.stream.as_deref().map(Stream::closed);
        async move {
            match closed {
                Some(closed) => closed.cancelled_owned().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until the server's own stream is open, if it has one: it may ask the client there.
    pub(super) async fn listens(&self) {
        if self.info.era == Era::Legacy && self.may_have_stream() {
            let _ = tokio::time::timeout(STREAM_WAIT, self.stream_tried.cancelled()).await;
            self.stream_tried.cancel();
        }
    }

    /// Takes note that the server has answered in it.
    pub(super) fn answered(&self) {
        *self.answered.lock() = Some(Instant::now());
    }

    /// Takes note that a connection broke or could not be made: the server may be another process
    /// now, which does not know the session.
    pub(super) fn doubt(&self) {
        *self.answered.lock() = None;
    }

    /// Returns `true` if the server has not answered in it for so long, or the session is in doubt.
    pub(super) fn is_unchecked(&self, longest: Duration) -> bool {
        let answered = *self.answered.lock();
        answered.is_none_or(|answered| answered.elapsed() > longest)
    }

    /// Returns `true` if the session is one the server may forget.
    pub(super) fn can_be_forgotten(&self) -> bool {
        self.stream.is_some() || self.headers.contains_key(&header::SESSION_ID)
    }
}
