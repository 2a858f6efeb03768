//! One session of a legacy client.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use callward_core::{Caller, ClientCapabilities, ClientInfo, SessionId};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::observed::SessionTimer;
use crate::server::client::SessionClient;
use crate::server::inflight::InFlight;

use super::resume::Streams;

/// One legacy client's session. Each task of the session holds an `Arc`, which keeps it alive.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Uuid,
    pub(super) caller: Arc<Caller>,
    /// How its client introduced itself.
    pub(super) client: Option<Arc<ClientInfo>>,
    /// How servers reach it.
    pub(super) peer: Arc<SessionClient>,
    pub(super) calls: Arc<InFlight>,
    /// Those that its client may resume.
    pub(super) streams: Arc<Streams>,
    /// A tool was called in it: the session is not among the first to end.
    pub(super) has_called: AtomicBool,
    /// Reports how long it lasted, if an observer is set.
    _timer: Option<SessionTimer>,
    /// What ends the notification stream that is open now.
    stream: Mutex<Option<CancellationToken>>,
}

impl Session {
    pub(super) fn new(
        caller: &Caller,
        client: Option<Arc<ClientInfo>>,
        capabilities: ClientCapabilities,
        timer: Option<SessionTimer>,
    ) -> Self {
        let id = Uuid::new_v4();
        let caller = caller.clone().with_session(SessionId::new(id.to_string()));
        Self {
            id,
            caller: Arc::new(caller),
            client,
            peer: Arc::new(SessionClient::new(capabilities)),
            calls: Arc::default(),
            streams: Arc::default(),
            has_called: AtomicBool::new(false),
            _timer: timer,
            stream: Mutex::new(None),
        }
    }

    /// Returns the caller of a request of this session, with the credential of that request: a
    /// token may have been refreshed, with other scopes, since the session was opened.
    pub(super) fn caller_of(&self, caller: &Arc<Caller>) -> Arc<Caller> {
        if Arc::ptr_eq(&caller.credential, &self.caller.credential) {
            return self.caller.clone();
        }
        let mut of_session = Caller::clone(&self.caller);
        of_session.credential = caller.credential.clone();
        Arc::new(of_session)
    }

    /// Replaces the notification stream by a new one. A message may travel on one stream only, and
    /// the older one may be a dead connection that is not noticed yet, so the older one ends.
    pub(super) fn open_stream(&self) -> CancellationToken {
        let token = self.calls.ended.child_token();
        if let Some(older) = self.stream.lock().replace(token.clone()) {
            older.cancel();
        }
        token
    }
}
