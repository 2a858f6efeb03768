//! What calls see of a pipe: the connection of the moment, or why there is none.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::supervisor;
use super::waiters::Answer;
use crate::upstream::answer::RequestError;
use crate::upstream::ask::{Ask, Style};
use crate::upstream::shared::{Shared, UpstreamStatus};
use crate::upstream::target::{CommandSpec, Io};

/// What is on the other end.
#[derive(Debug)]
pub(in crate::upstream) enum End {
    Command(CommandSpec),
    Io(Io),
}

/// What earlier connections showed of the server's era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownEra {
    Unknown,
    Modern,
    Legacy,
    /// It died of the probe: greet it the old way next time.
    DiedOfProbe,
}

/// A connection that is up.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) connection: Arc<Connection>,
    /// What each request carries in `_meta`; nothing for legacy servers.
    pub(super) context: Option<Arc<[u8]>>,
    /// Whether calls carry their idempotency keys.
    pub(super) keys: bool,
    /// The revision the server speaks.
    pub(super) version: Option<&'static str>,
}

impl Live {
    pub(super) async fn request(&self, ask: &Ask<'_>) -> Answer {
        let style = Style {
            context: self.context.as_deref(),
            keys: self.keys,
            version: self.version,
        };
        self.connection.request(ask, style).await
    }
}

/// The connection of the moment. The supervisor sets it; calls take it.
#[derive(Debug)]
pub(in crate::upstream) struct PipeLink {
    shared: Arc<Shared>,
    live: RwLock<Option<Live>>,
}

impl PipeLink {
    /// Starts the supervisor, which connects for as long as `stop` does not fire.
    pub(in crate::upstream) fn start(
        shared: &Arc<Shared>,
        end: End,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let link = Arc::new(Self {
            shared: shared.clone(),
            live: RwLock::new(None),
        });
        tokio::spawn(supervisor::run(
            shared.clone(),
            link.clone(),
            end,
            stop.clone(),
        ));
        link
    }

    pub(in crate::upstream) async fn request(&self, ask: &Ask<'_>) -> Result<Bytes, RequestError> {
        let live = self.live.read().clone();
        match live {
            Some(live) => live.request(ask).await,
            None => Err(self.no_connection()),
        }
    }

    pub(super) fn set(&self, live: Option<Live>) {
        *self.live.write() = live;
    }

    fn no_connection(&self) -> RequestError {
        RequestError::not_sent(match &*self.shared.status().borrow() {
            UpstreamStatus::Connecting | UpstreamStatus::Up => {
                "the server is not connected yet: wait for it to be ready".to_owned()
            }
            UpstreamStatus::Down(reason) => format!(
                "the server is down ({reason}); it is being started again: call again later, and \
                 check its command if this stays"
            ),
            UpstreamStatus::Closed => "the server was shut down".to_owned(),
        })
    }
}
