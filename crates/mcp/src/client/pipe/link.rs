//! The pipe of calls: the current connection, or why there is none.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::{Delivery, ErrorKind, Reopening, ToolError};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::connection::Connection;
use super::supervisor;
use crate::client::answer::RequestError;
use crate::client::ask::{Ask, Style};
use crate::client::shared::{Shared, UpstreamStatus};
use crate::client::target::{CommandSpec, Io};

/// The other end.
#[derive(Debug)]
pub(in crate::client) enum End {
    Command(CommandSpec),
    Io(Io),
}

/// A connection that is up.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: Arc<Connection>,
    pub(super) style: Style,
}

/// The current connection. The supervisor sets it; calls use it.
pub(in crate::client) struct PipeLink {
    shared: Arc<Shared>,
    pub(super) state: watch::Sender<LinkState>,
}

/// Whether there is a connection.
#[derive(Clone)]
pub(super) enum LinkState {
    /// There was none yet, or none since the last one was closed as not needed.
    Connecting,
    Live(Live),
    /// The last one ended then.
    Lost(Instant),
}

impl PipeLink {
    /// Starts the supervisor, which connects until the upstream is stopped.
    pub(in crate::client) fn start(shared: &Arc<Shared>, end: End) -> Arc<Self> {
        let link = Arc::new(Self {
            shared: shared.clone(),
            state: watch::Sender::new(LinkState::Connecting),
        });
        tokio::spawn(supervisor::run(shared.clone(), link.clone(), end));
        link
    }

    pub(in crate::client) async fn request(&self, ask: &Ask<'_>) -> Result<Bytes, RequestError> {
        let state = self.state.borrow().clone();
        match state {
            LinkState::Live(live) => live.connection.request(ask, &live.style).await,
            LinkState::Connecting => Err(RequestError::Failed(self.no_connection())),
            LinkState::Lost(at) => {
                let mut error = self.no_connection();
                let until = at + SOON;
                if until <= Instant::now() {
                    return Err(RequestError::Failed(error));
                }
                error.reopening = Some(back(self.state.subscribe(), until));
                Err(RequestError::Failed(error))
            }
        }
    }

    /// Sends a message that is not a request, if there is a connection.
    pub(in crate::client) fn say(&self, message: Vec<u8>) {
        if let LinkState::Live(live) = &*self.state.borrow() {
            live.connection.say(message);
        }
    }

    fn no_connection(&self) -> ToolError {
        let message = match self.shared.status() {
            UpstreamStatus::Connecting | UpstreamStatus::Up | UpstreamStatus::Idle => {
                "the server is not connected yet: wait for it to be ready".to_owned()
            }
            UpstreamStatus::Down(reason) => format!(
                "the server is down ({reason}): call again later, and check its command if this \
                 stays"
            ),
            UpstreamStatus::Closed => "the server was shut down".to_owned(),
        };
        ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, message)
    }
}

/// How long after its loss a server is expected back: a restart usually takes less, and no call
/// should wait long for one that does not start at all.
const SOON: Duration = Duration::from_secs(5);

/// The return of a server, or the end of the time in which it is expected.
fn back(state: watch::Receiver<LinkState>, until: Instant) -> Reopening {
    Arc::new(move || {
        let mut state = state.clone();
        Box::pin(async move {
            let back = state.wait_for(|state| matches!(state, LinkState::Live(_)));
            // back or not, it is asked again
            let _ = timeout_at(until, back).await;
        })
    })
}
