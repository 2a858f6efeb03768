//! How long requests and sessions lasted, reported to observers.

use std::sync::Arc;

use callward_core::{PeerObserver, PeerOutcome, PeerRequest, PeerSession, ServerId, Tool};
use tokio::time::Instant;

/// A session that lasts until this is dropped.
#[derive(Debug)]
pub(crate) struct SessionTimer {
    observer: Arc<dyn PeerObserver>,
    session: PeerSession,
    began: Instant,
}

impl SessionTimer {
    pub(crate) fn begin(observer: Arc<dyn PeerObserver>, session: PeerSession) -> Self {
        Self {
            observer,
            session,
            began: Instant::now(),
        }
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
    observer: &'a dyn PeerObserver,
    method: &'static str,
    server: &'a ServerId,
    tool: Option<&'a Arc<Tool>>,
    began: Instant,
    ended: bool,
}

impl<'a> RequestTimer<'a> {
    pub(crate) fn begin(
        observer: &'a dyn PeerObserver,
        method: &'static str,
        server: &'a ServerId,
        tool: Option<&'a Arc<Tool>>,
    ) -> Self {
        Self {
            observer,
            method,
            server,
            tool,
            began: Instant::now(),
            ended: false,
        }
    }

    pub(crate) fn end(mut self, outcome: PeerOutcome<'_>) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: PeerOutcome<'_>) {
        self.ended = true;
        let request = PeerRequest::sent(self.method, self.server, self.tool, outcome);
        self.observer.request_ended(&request, self.began.elapsed());
    }
}

impl Drop for RequestTimer<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(PeerOutcome::Cancelled);
        }
    }
}
