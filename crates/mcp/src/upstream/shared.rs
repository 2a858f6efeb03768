//! What the handles, the calls and the tasks of one upstream share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    subscribers: Mutex<Vec<Subscriber>>,
}

/// One stream of events, seen from the sending side.
///
/// Losses and returns are few, since attempts to connect have pauses between them. Changes of the
/// tools are as many as the server likes, so only one at a time waits to be read.
#[derive(Debug)]
struct Subscriber {
    events: mpsc::UnboundedSender<ServerEvent>,
    change_waits: Arc<AtomicBool>,
}

impl Subscriber {
    /// False if nobody reads any more.
    fn tell(&self, event: ServerEvent) -> bool {
        if event == ServerEvent::ToolsChanged && self.change_waits.swap(true, Ordering::AcqRel) {
            return !self.events.is_closed();
        }
        self.events.send(event).is_ok()
    }
}

/// One stream of events, seen from the reading side.
#[derive(Debug)]
pub(super) struct Events {
    events: mpsc::UnboundedReceiver<ServerEvent>,
    change_waits: Arc<AtomicBool>,
}

impl Events {
    /// Returns the next event; nothing after the end.
    pub(super) async fn next(&mut self) -> Option<ServerEvent> {
        let event = self.events.recv().await?;
        if event == ServerEvent::ToolsChanged {
            // before it is acted upon: a change from here on is news
            self.change_waits.store(false, Ordering::Release);
        }
        Some(event)
    }
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
            .retain(|subscriber| subscriber.tell(ServerEvent::ToolsChanged));
    }

    /// Adds a subscriber. The state of the moment is its first event; while the first connection is
    /// still being made there is none: the server is not there yet, and that is no failure.
    pub(super) fn subscribe(&self) -> Events {
        let (sender, receiver) = mpsc::unbounded_channel();
        let subscriber = Subscriber {
            events: sender,
            change_waits: Arc::default(),
        };
        let events = Events {
            events: receiver,
            change_waits: subscriber.change_waits.clone(),
        };
        let mut subscribers = self.subscribers.lock();
        let now = match &*self.status.borrow() {
            UpstreamStatus::Up => Some(ServerEvent::Up),
            UpstreamStatus::Down(reason) => Some(ServerEvent::Down(reason.to_string())),
            UpstreamStatus::Connecting => None,
            // its sender is dropped, and so the stream ends
            UpstreamStatus::Closed => return events,
        };
        if let Some(now) = now {
            // the receiver is in our hands, so this cannot fail
            let _ = subscriber.tell(now);
        }
        subscribers.push(subscriber);
        events
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
            subscribers.retain(|subscriber| subscriber.tell(event.clone()));
        }
        changed
    }
}
