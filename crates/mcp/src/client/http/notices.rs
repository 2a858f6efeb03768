//! Messages to a server that no call waits for: replies to its requests, and which calls are
//! cancelled.
//!
//! A server decides how many there are, so they share one bounded queue, and each has a time limit.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::exchange;
use super::link::HttpLink;
use super::session::Session;
use crate::sparse::Sparse;

/// How many notices wait. What comes beyond that is dropped.
const MAX_WAITING: usize = 256;
/// How long a notice may be, in bytes: a server chooses the id that its reply repeats.
const MAX_BYTES: usize = 16 * 1024;
/// How many are sent at the same time, each on a connection of its own.
const MAX_AT_ONCE: usize = 8;
/// How long sending one may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long one may wait: after that the server has given up, or ended the call.
const MAX_WAIT: Duration = Duration::from_secs(5);

static DROPPED: Sparse = Sparse::new();

/// The sending half of the queue. The task that sends ends with it.
#[derive(Debug)]
pub(super) struct Notices {
    queue: mpsc::Sender<Notice>,
}

#[derive(Debug)]
struct Notice {
    session: Arc<Session>,
    message: Vec<u8>,
    since: Instant,
}

impl Notices {
    /// Starts the task that sends for `link`.
    pub(super) fn start(link: Weak<HttpLink>) -> Self {
        let (queue, mut waiting) = mpsc::channel(MAX_WAITING);
        let waiting = stream::poll_fn(move |cx| waiting.poll_recv(cx));
        tokio::spawn(waiting.for_each_concurrent(MAX_AT_ONCE, move |notice| {
            let link = link.clone();
            async move {
                if let Some(link) = link.upgrade() {
                    send(&link, notice).await;
                }
            }
        }));
        Self { queue }
    }

    /// Queues a reply to a request of the server. Of those that have to be dropped some are
    /// reported.
    pub(super) fn reply(&self, session: &Arc<Session>, message: Vec<u8>) {
        let is_lost = !self.push(session, message) && !self.queue.is_closed();
        if is_lost && let Some(unlogged) = DROPPED.admit() {
            tracing::warn!(
                session = session.id(),
                unlogged,
                "a reply to a request of the server is dropped, and more may be: the server takes them \
                 too slowly, or its ids are too long"
            );
        }
    }

    /// Queues a message. False if it was dropped: it is too long, or the queue is full or closed.
    pub(super) fn push(&self, session: &Arc<Session>, message: Vec<u8>) -> bool {
        let is_short = message.len() <= MAX_BYTES;
        let notice = Notice {
            session: session.clone(),
            message,
            since: Instant::now(),
        };
        is_short && self.queue.try_send(notice).is_ok()
    }
}

async fn send(link: &Arc<HttpLink>, notice: Notice) {
    if notice.since.elapsed() > MAX_WAIT {
        return;
    }
    let reported = exchange::tell(link, &notice.session, notice.message);
    if let Ok(Err(error)) = tokio::time::timeout(TIMEOUT, reported).await {
        let error = error.into_tool_error();
        tracing::debug!(server = %link.shared.id, %error, "a notice was not taken");
    }
}
