//! The state that handles, calls and tasks of one upstream share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use callward_core::{ServerEvent, ServerId};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::builder::Options;
use super::info::ServerInfo;

/// The state of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamStatus {
    /// The first connection is being made.
    Connecting,
    /// Connected.
    Up,
    /// Not connected, and why: in words for clients too. Attempts go on.
    Down(Arc<str>),
    /// Closed because no client needs it; the next call or listing connects again.
    Idle,
    /// Shut down for good.
    Closed,
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Up => f.write_str("up"),
            Self::Down(reason) => write!(f, "down: {reason}"),
            Self::Idle => f.write_str("idle"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// Why a server is down.
#[derive(Debug, Clone)]
pub(super) struct Loss {
    /// For clients, too.
    pub(super) reason: String,
    /// For operators: with what a child last said, which may tell more than clients should know.
    pub(super) detail: String,
}

impl From<String> for Loss {
    fn from(reason: String) -> Self {
        let detail = reason.clone();
        Self { reason, detail }
    }
}

/// State of one upstream, its subscribers, and its settings.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: ServerId,
    pub(super) options: Options,
    /// Ends the connection for good.
    stop: CancellationToken,
    /// Ends the current connection. Once it is cancelled, the next token opens the next connection.
    current: watch::Sender<CancellationToken>,
    status: watch::Sender<UpstreamStatus>,
    /// What operators see of the last loss. Changed together with the status.
    detail: Mutex<Arc<str>>,
    info: Mutex<Option<Arc<ServerInfo>>>,
    /// The child that runs, by the system's number; 0 means no child.
    process: AtomicU32,
    /// Whether the last attempt failed because the command could not be started.
    not_started: AtomicBool,
    /// Locked for each change of state, so that a new subscriber misses none and sees none twice.
    subscribers: Mutex<Vec<Subscriber>>,
}

/// One stream of events, seen from the sending side.
///
/// Losses and returns are few, since attempts to connect have pauses between them. Changes of the
/// tools, and of the state behind them, are as many as the server likes, so only one of each at a
/// time waits to be read.
#[derive(Debug)]
struct Subscriber {
    events: mpsc::UnboundedSender<ServerEvent>,
    waits: Arc<Waits>,
}

/// Which events wait to be read that need not be reported twice.
#[derive(Debug, Default)]
struct Waits {
    tools_changed: AtomicBool,
    stale: AtomicBool,
}

impl Waits {
    fn of(&self, event: &ServerEvent) -> Option<&AtomicBool> {
        match event {
            ServerEvent::ToolsChanged => Some(&self.tools_changed),
            ServerEvent::Stale => Some(&self.stale),
            _ => None,
        }
    }
}

impl Subscriber {
    /// Returns `false` if the receiver is gone.
    fn tell(&self, event: ServerEvent) -> bool {
        let waits = self.waits.of(&event);
        if waits.is_some_and(|waits| waits.swap(true, Ordering::AcqRel)) {
            return !self.events.is_closed();
        }
        self.events.send(event).is_ok()
    }
}

/// One stream of events, seen from the reading side.
#[derive(Debug)]
pub(super) struct Events {
    events: mpsc::UnboundedReceiver<ServerEvent>,
    waits: Arc<Waits>,
}

impl Events {
    /// Returns the next event; nothing after the end.
    pub(super) async fn next(&mut self) -> Option<ServerEvent> {
        let event = self.events.recv().await?;
        if let Some(waits) = self.waits.of(&event) {
            // before it is acted upon: a change from here on is news
            waits.store(false, Ordering::Release);
        }
        Some(event)
    }
}

impl Shared {
    /// The connection is open until [`stop`](Self::stop) fires, or as [`open`](Self::open) says.
    pub(super) fn new(id: ServerId, options: Options) -> Arc<Self> {
        let stop = CancellationToken::new();
        Arc::new(Self {
            id,
            options,
            current: watch::Sender::new(stop.clone()),
            stop,
            status: watch::Sender::new(UpstreamStatus::Connecting),
            detail: Mutex::default(),
            info: Mutex::new(None),
            process: AtomicU32::new(0),
            not_started: AtomicBool::new(false),
            subscribers: Mutex::new(Vec::new()),
        })
    }

    /// Returns what ends the connection for good.
    pub(super) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Opens the connection. It closes when the guard is dropped, and can be opened again after
    /// that.
    pub(super) fn open(&self) -> DropGuard {
        self.status.send_if_modified(|status| {
            let is_idle = *status == UpstreamStatus::Idle;
            if is_idle {
                *status = UpstreamStatus::Connecting;
            }
            is_idle
        });
        let current = self.stop.child_token();
        self.current.send_replace(current.clone());
        current.drop_guard()
    }

    /// Waits until the connection is to be open; returns what closes it.
    pub(super) async fn opened(&self) -> CancellationToken {
        let mut current = self.current.subscribe();
        let opened = current.wait_for(|current| !current.is_cancelled()).await;
        // the sender belongs to `self`, so there is a token
        opened.map_or_else(|_| self.stop.clone(), |current| current.clone())
    }

    pub(super) fn status(&self) -> watch::Receiver<UpstreamStatus> {
        self.status.subscribe()
    }

    pub(super) fn current_status(&self) -> UpstreamStatus {
        self.status.borrow().clone()
    }

    pub(super) fn is_up(&self) -> bool {
        *self.status.borrow() == UpstreamStatus::Up
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(*self.status.borrow(), UpstreamStatus::Down(_))
    }

    /// Returns `true` if the connection was closed by [`idle`](Self::idle) and is not open again
    /// yet.
    pub(super) fn is_reopening(&self) -> bool {
        let is_closed = match &*self.status.borrow() {
            UpstreamStatus::Idle | UpstreamStatus::Connecting => true,
            UpstreamStatus::Up | UpstreamStatus::Down(_) | UpstreamStatus::Closed => false,
        };
        is_closed && self.info.lock().is_some()
    }

    pub(super) fn info(&self) -> Option<Arc<ServerInfo>> {
        self.info.lock().clone()
    }

    pub(super) fn set_info(&self, info: Arc<ServerInfo>) {
        *self.info.lock() = Some(info);
    }

    /// Notes that the server is up.
    pub(super) fn up(&self) {
        if self.is_up() {
            return; // the usual case, on every HTTP answer: no lock
        }
        if self.change(UpstreamStatus::Up, Some(ServerEvent::Up)) {
            tracing::info!(server = %self.id, "connected");
        }
    }

    /// Notes that the server is down, and why. Only the first of several reasons is announced:
    /// calls may find any number of them.
    pub(super) fn down(&self, reason: &str) {
        self.note_loss(&reason.to_owned().into(), false);
    }

    /// Notes that the server is down, or still is after another attempt. Each reason that differs
    /// from the one before is announced: attempts have pauses between them.
    pub(super) fn lost(&self, loss: &Loss) {
        self.note_loss(loss, true);
    }

    fn note_loss(&self, loss: &Loss, announces_news: bool) {
        let mut subscribers = self.subscribers.lock();
        let was_down = self.is_down();
        let changed = self.set(UpstreamStatus::Down(loss.reason.as_str().into()));
        if !self.is_down() {
            return;
        }
        let is_news = **self.detail.lock() != *loss.detail;
        *self.detail.lock() = loss.detail.as_str().into();
        if changed && !was_down {
            tracing::warn!(server = %self.id, reason = loss.detail, "not connected; connecting again");
        }
        if !was_down || is_news && announces_news {
            let event = ServerEvent::Down(loss.detail.clone());
            subscribers.retain(|subscriber| subscriber.tell(event.clone()));
        }
    }

    /// Returns what operators see of the last loss.
    pub(super) fn detail(&self) -> Arc<str> {
        self.detail.lock().clone()
    }

    /// Notes that the connection was closed until it is [opened](Self::open) again. The server
    /// counts as up, also if it was down: whether it still is shows when it is needed.
    pub(super) fn idle(&self) {
        let event = self.is_down().then_some(ServerEvent::Up);
        self.change(UpstreamStatus::Idle, event);
    }

    /// Notes the end. Streams of events end with it.
    pub(super) fn closed(&self) {
        let mut subscribers = self.subscribers.lock();
        self.status.send_replace(UpstreamStatus::Closed);
        subscribers.clear();
    }

    pub(super) fn tools_changed(&self) {
        self.tell(&ServerEvent::ToolsChanged);
    }

    /// Notes that what was read through some instance may not hold any more.
    pub(super) fn stale(&self) {
        self.tell(&ServerEvent::Stale);
    }

    fn tell(&self, event: &ServerEvent) {
        self.subscribers
            .lock()
            .retain(|subscriber| subscriber.tell(event.clone()));
    }

    /// Returns the number of the child that runs, if it is one.
    pub(super) fn process(&self) -> Option<u32> {
        Some(self.process.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    pub(super) fn set_process(&self, id: Option<u32>) {
        self.process.store(id.unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns `true` if the last attempt failed because the command could not be started.
    pub(super) fn was_not_started(&self) -> bool {
        self.not_started.load(Ordering::Relaxed)
    }

    pub(super) fn set_not_started(&self, value: bool) {
        self.not_started.store(value, Ordering::Relaxed);
    }

    /// Adds a subscriber. The state of the moment is its first event; while the first connection is
    /// still being made there is none: the server is not there yet, and that is not a failure.
    pub(super) fn subscribe(&self) -> Events {
        let (sender, receiver) = mpsc::unbounded_channel();
        let subscriber = Subscriber {
            events: sender,
            waits: Arc::default(),
        };
        let events = Events {
            events: receiver,
            waits: subscriber.waits.clone(),
        };
        let mut subscribers = self.subscribers.lock();
        let now = match &*self.status.borrow() {
            UpstreamStatus::Up | UpstreamStatus::Idle => Some(ServerEvent::Up),
            UpstreamStatus::Down(_) => Some(ServerEvent::Down(self.detail().to_string())),
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
        let changed = self.set(to);
        if let (true, Some(event)) = (changed, event) {
            subscribers.retain(|subscriber| subscriber.tell(event.clone()));
        }
        changed
    }

    /// Returns `true` if that changed anything. Only with the subscribers locked.
    fn set(&self, to: UpstreamStatus) -> bool {
        self.status.send_if_modified(|status| {
            // only `open` ends `Idle`, and nothing ends `Closed`
            if *status == to || matches!(status, UpstreamStatus::Idle | UpstreamStatus::Closed) {
                return false;
            }
            *status = to;
            true
        })
    }
}
