//! What the handles, the calls and the tasks of one upstream share.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tollgate_core::{ServerEvent, ServerId};

use super::builder::Options;
use super::info::ServerInfo;

/// How the connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamStatus {
    /// The first connection is being made.
    Connecting,
    /// Connected.
    Up,
    /// Not connected, and why. Attempts go on.
    Down(Arc<str>),
    /// Shut down for good.
    Closed,
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Up => f.write_str("up"),
            Self::Down(reason) => write!(f, "down: {reason}"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// State of one upstream, its subscribers, and its settings.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: ServerId,
    pub(super) options: Options,
    status: watch::Sender<UpstreamStatus>,
    info: Mutex<Option<Arc<ServerInfo>>>,
    /// Locked for each change of state, so that a new subscriber misses none and sees none twice.
    subscribers: Mutex<Vec<mpsc::UnboundedSender<ServerEvent>>>,
}

impl Shared {
    pub(super) fn new(id: ServerId, options: Options) -> Arc<Self> {
        Arc::new(Self {
            id,
            options,
            status: watch::Sender::new(UpstreamStatus::Connecting),
            info: Mutex::new(None),
            subscribers: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn status(&self) -> watch::Receiver<UpstreamStatus> {
        self.status.subscribe()
    }

    pub(super) fn is_up(&self) -> bool {
        *self.status.borrow() == UpstreamStatus::Up
    }

    pub(super) fn info(&self) -> Option<Arc<ServerInfo>> {
        self.info.lock().clone()
    }

    pub(super) fn set_info(&self, info: Arc<ServerInfo>) {
        *self.info.lock() = Some(info);
    }

    /// Notes that the server is there.
    pub(super) fn up(&self) {
        if self.is_up() {
            return; // the usual case, on every HTTP answer: no lock
        }
        if self.change(UpstreamStatus::Up, Some(ServerEvent::Up)) {
            tracing::info!(server = %self.id, "connected");
        }
    }

    /// Notes that the server is gone, and why. Only the first of several reasons is announced.
    pub(super) fn down(&self, reason: &str) {
        let was_down = matches!(*self.status.borrow(), UpstreamStatus::Down(_));
        let event = (!was_down).then(|| ServerEvent::Down(reason.to_owned()));
        let changed = self.change(UpstreamStatus::Down(reason.into()), event);
        if changed && !was_down {
            tracing::warn!(server = %self.id, reason, "not connected; attempts go on");
        }
    }

    /// Notes the end. Streams of events end with it.
    pub(super) fn closed(&self) {
        let mut subscribers = self.subscribers.lock();
        self.status.send_replace(UpstreamStatus::Closed);
        subscribers.clear();
    }

    pub(super) fn tools_changed(&self) {
        self.subscribers
            .lock()
            .retain(|subscriber| subscriber.send(ServerEvent::ToolsChanged).is_ok());
    }

    /// Adds a subscriber. The state of the moment is its first event; while the first connection is
    /// still being made there is none: the server is not there yet, and that is no failure.
    pub(super) fn subscribe(&self) -> mpsc::UnboundedReceiver<ServerEvent> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut subscribers = self.subscribers.lock();
        let now = match &*self.status.borrow() {
            UpstreamStatus::Up => Some(ServerEvent::Up),
            UpstreamStatus::Down(reason) => Some(ServerEvent::Down(reason.to_string())),
            UpstreamStatus::Connecting => None,
            // its sender is dropped, and so the stream ends
            UpstreamStatus::Closed => return receiver,
        };
        if let Some(now) = now {
            // the receiver is in our hands, so this cannot fail
            let _ = sender.send(now);
        }
        subscribers.push(sender);
        receiver
    }

    fn change(&self, to: UpstreamStatus, event: Option<ServerEvent>) -> bool {
        let mut subscribers = self.subscribers.lock();
        let changed = self.status.send_if_modified(|status| {
            if *status == to || *status == UpstreamStatus::Closed {
                return false;
            }
            *status = to;
            true
        });
        if let (true, Some(event)) = (changed, event) {
            subscribers.retain(|subscriber| subscriber.send(event.clone()).is_ok());
        }
        changed
    }
}
