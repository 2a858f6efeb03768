//! How long requests and sessions lasted, reported to observers.

use std::sync::Arc;

use callward_core::{
    PeerObserver, PeerOutcome, PeerRequest, PeerSession, PeerSide, ServerId, Tool,
};
use tokio::time::Instant;

/// A session that lasts until this is dropped.
#[derive(Debug)]
pub(crate) struct SessionTimer {
    observer: Arc<dyn PeerObserver>,
    session: PeerSession,
    began: Instant,
}

impl SessionTimer {
    /// Begins a session over this transport, if there is an observer.
    pub(crate) fn begin(
        observer: Option<&Arc<dyn PeerObserver>>,
        side: PeerSide,
        transport: &'static str,
    ) -> Option<Self> {
        Some(Self {
            observer: Arc::clone(observer?),
            session: PeerSession { side, transport },
            began: Instant::now(),
        })
    }
}

impl Drop for SessionTimer {
    fn drop(&mut self) {
        self.observer
            .session_ended(&self.session, self.began.elapsed());
    }
}

/// A request to a server. Dropped before its end, it was given up.
pub(crate) struct RequestTimer<'a> {
    /// The observer until the end is reported, if there is one.
    pub(crate) observer: Option<&'a dyn PeerObserver>,
    pub(crate) method: &'static str,
    pub(crate) server: &'a ServerId,
    pub(crate) tool: Option<&'a Arc<Tool>>,
    pub(crate) began: Instant,
}

impl RequestTimer<'_> {
    pub(crate) fn end(&mut self, outcome: PeerOutcome<'_>) {
        if let Some(observer) = self.observer.take() {
            let request = PeerRequest {
                side: PeerSide::Client,
                method: self.method,
                tool: self.tool,
                server: Some(self.server),
                outcome,
            };
            observer.request_ended(&request, self.began.elapsed());
        }
    }
}

impl Drop for RequestTimer<'_> {
    fn drop(&mut self) {
        self.end(PeerOutcome::Cancelled);
    }
}
