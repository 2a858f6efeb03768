//! The state that handles, calls and tasks of one upstream share.

mod events;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callward_core::{ClientCapabilities, ClientMethod, List, LogLevel, ServerId, ToolCall};
use futures_util::future::OptionFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::asked::{Asker, Meant, ServerRequests, UNDECLARED};
use super::http::Connections;
use super::info::ServerInfo;
use super::options::{OnlyClient, UpstreamOptions};
use super::watched::{self, Watched};
use crate::wire::LongMessages;

pub(super) use self::events::Events;

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

impl UpstreamStatus {
    pub(super) fn is_down(&self) -> bool {
        matches!(self, Self::Down(_))
    }

    /// Returns `true` if the server is up, as far as is known.
    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up | Self::Idle)
    }
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
#[derive(Debug, Clone, Default)]
pub(super) struct Loss {
    /// For clients, too.
    pub(super) reason: String,
    /// For operators: with what a child last said, which may tell more than clients should know.
    pub(super) detail: String,
    /// Whether its command could not be started.
    pub(super) not_started: bool,
}

impl From<String> for Loss {
    fn from(reason: String) -> Self {
        Self {
            detail: reason.clone(),
            reason,
            not_started: false,
        }
    }
}

/// What is known of the server and its connection.
#[derive(Debug)]
struct State {
    status: UpstreamStatus,
    /// The last one.
    loss: Loss,
    info: Option<Arc<ServerInfo>>,
    /// When the last connection was made.
    since: Option<Instant>,
    news: News,
    /// When each wanted resource was updated last, as the count of updates.
    updated: BTreeMap<Arc<str>, u64>,
}

/// How often each event was announced. A server may announce changes as often as it likes, so a
/// subscriber that has not read the last one is notified once.
#[derive(Debug, Clone, Copy, Default)]
struct News {
    losses: u64,
    /// By list.
    changed: [u64; List::ALL.len()],
    stale: u64,
    /// Those of all resources.
    updates: u64,
}

/// How long a greeting waits for what the only client declares.
const ONLY_CLIENT: Duration = Duration::from_secs(2);

/// State of one upstream, and its settings.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: ServerId,
    pub(super) options: UpstreamOptions,
    /// Those of all instances together.
    pub(super) connections: Connections,
    pub(super) long_messages: LongMessages,
    /// The child that runs, by the system's number.
    pub(super) process: Mutex<Option<u32>>,
    /// What its servers learn that clients declare; `None` before the first greeting.
    declared: Mutex<Option<ClientCapabilities>>,
    /// Whether all calls are of one owner: only then is it known which client a server means that
    /// does not say.
    is_owned: AtomicBool,
    /// The owner's client, between calls.
    client: Mutex<Option<Asker>>,
    /// The level of log messages that was set at the server.
    pub(super) log_level: Mutex<Option<LogLevel>>,
    pub(super) requests: Arc<ServerRequests>,
    /// The resources whose updates are wanted: those of all instances are the same.
    pub(super) watched: Watched,
    /// Ends the connection for good.
    pub(super) stop: CancellationToken,
    /// Ends the current connection. Once it is cancelled, the next token opens the next connection.
    current: watch::Sender<CancellationToken>,
    state: watch::Sender<State>,
}

impl Shared {
    /// Makes the state of a server, or of a further instance, which takes part in the limits of the
    /// first. The connection is open until `stop` fires, or as [`open`](Self::open) says.
    pub(super) fn new(id: ServerId, options: UpstreamOptions, first: Option<&Self>) -> Arc<Self> {
        let stop = CancellationToken::new();
        let connections = first.map(|first| first.connections.clone());
        let connections = connections.unwrap_or_else(|| Connections::new(options.max_connections));
        let long_messages = first.map(|first| first.long_messages.clone());
        Arc::new(Self {
            id,
            options,
            connections,
            long_messages: long_messages.unwrap_or_default(),
            process: Mutex::default(),
            declared: Mutex::default(),
            is_owned: AtomicBool::new(false),
            client: Mutex::default(),
            log_level: Mutex::default(),
            requests: Arc::default(),
            watched: first.map_or_else(Watched::default, |first| first.watched.of_another()),
            current: watch::Sender::new(stop.clone()),
            stop,
            state: watch::Sender::new(State {
                status: UpstreamStatus::Connecting,
                loss: Loss::default(),
                info: None,
                since: None,
                news: News::default(),
                updated: BTreeMap::new(),
            }),
        })
    }

    /// Opens the connection. It closes when the guard is dropped, and can be opened again after
    /// that.
    pub(super) fn open(&self) -> DropGuard {
        self.state.send_if_modified(|state| {
            let is_idle = state.status == UpstreamStatus::Idle;
            if is_idle {
                state.status = UpstreamStatus::Connecting;
            }
            is_idle
        });
        let current = self.stop.child_token();
        self.current.send_replace(current.clone());
        current.drop_guard()
    }

    /// Waits until the connection is to be open; returns what closes it, or nothing once it is
    /// closed for good.
    pub(super) async fn opened(&self) -> Option<CancellationToken> {
        let mut current = self.current.subscribe();
        let opened = current.wait_for(|current| !current.is_cancelled());
        let opened = self.stop.run_until_cancelled(opened).await?;
        Some(opened.ok()?.clone())
    }

    pub(super) fn status(&self) -> UpstreamStatus {
        self.state.borrow().status.clone()
    }

    /// Waits for a state of the connection, and returns it.
    pub(super) async fn until(
        &self,
        mut is_it: impl FnMut(&UpstreamStatus) -> bool,
    ) -> UpstreamStatus {
        let mut state = self.state.subscribe();
        let found = state.wait_for(|state| is_it(&state.status)).await;
        // the sender belongs to `self`, so there is a state
        found.map_or(UpstreamStatus::Closed, |state| state.status.clone())
    }

    /// Waits for the outcome of the first attempt to connect.
    pub(super) async fn tried(&self) {
        self.until(|status| *status != UpstreamStatus::Connecting)
            .await;
    }

    /// Acts now, and whenever something has changed, until that returns `false`.
    pub(super) async fn each_change(&self, mut act: impl FnMut() -> bool) {
        let mut state = self.state.subscribe();
        while act() && state.changed().await.is_ok() {}
    }

    /// Returns `true` if the connection was closed by [`idle`](Self::idle) and is not open again
    /// yet.
    pub(super) fn is_reopening(&self) -> bool {
        let state = self.state.borrow();
        let is_closed = matches!(
            state.status,
            UpstreamStatus::Idle | UpstreamStatus::Connecting
        );
        is_closed && state.info.is_some()
    }

    pub(super) fn info(&self) -> Option<Arc<ServerInfo>> {
        self.state.borrow().info.clone()
    }

    /// Returns what the server learns that its client declares. Waits for the only client, if
    /// there is only one.
    pub(super) async fn declared(&self) -> ClientCapabilities {
        let known = *self.declared.lock();
        if let Some(known) = known {
            return known;
        }
        let mut only = self.options.only_client.clone();
        let only = OptionFuture::from(only.as_mut().map(|only| async {
            let known = only.wait_for(Option::is_some);
            let known = tokio::time::timeout(ONLY_CLIENT, known).await.ok()?;
            known.ok()?.as_ref().map(|only| only.capabilities)
        }));
        let declared = only.await.flatten().unwrap_or_default();
        *self.declared.lock().get_or_insert(declared)
    }

    /// Returns the same without waiting: before the first greeting, what it will declare.
    pub(super) fn declares(&self) -> ClientCapabilities {
        let only = || Some(self.only()?.capabilities);
        self.declared.lock().or_else(only).unwrap_or_default()
    }

    /// Returns the only client of this process, once it is known.
    fn only(&self) -> Option<OnlyClient> {
        let only = self.options.only_client.as_ref()?;
        only.borrow().clone()
    }

    /// Takes note that calls are of one owner, whose client made this one.
    pub(super) fn note_owner(&self, call: &ToolCall) {
        self.is_owned.store(true, Ordering::Relaxed);
        if !call.is_background {
            *self.client.lock() = Asker::between_calls(call);
        }
    }

    /// Takes note that the calls that follow are of no owner, or of another one.
    pub(super) fn disown(&self) {
        self.is_owned.store(false, Ordering::Relaxed);
        *self.client.lock() = None;
    }

    pub(super) fn is_owned(&self) -> bool {
        self.is_owned.load(Ordering::Relaxed) || self.options.only_client.is_some()
    }

    /// Returns the client to ask when a request does not name its call: that of the calls in
    /// flight, or between calls that of the owner.
    ///
    /// # Errors
    ///
    /// Why it is not known, for the server.
    pub(super) fn client(&self, meant: impl FnOnce() -> Meant) -> Result<Asker, &'static str> {
        if !self.is_owned() {
            return Err("clients share this server, so none of them can be asked");
        }
        let of_owner = || {
            let of_owner = self.client.lock().clone();
            of_owner.or_else(|| self.only().and_then(Asker::only))
        };
        match meant() {
            Meant::Client(client) => Ok(client),
            Meant::NoCall => of_owner().ok_or("no client can be asked between its calls"),
            Meant::Unclear => Err("calls of several clients run, and the request names none"),
        }
    }

    /// Returns the client if the server knows that it may be asked this.
    pub(super) fn asks(
        &self,
        client: Result<Asker, &'static str>,
        method: ClientMethod,
        params: Option<&Bytes>,
    ) -> Result<Asker, &'static str> {
        let params = params.map_or(&b"{}"[..], |params| params);
        match self.declares().allow(method, params) {
            true => client,
            false => Err(UNDECLARED),
        }
    }

    pub(super) fn declare(&self, capabilities: ClientCapabilities) {
        *self.declared.lock() = Some(capabilities);
    }

    pub(super) fn since(&self) -> Option<Instant> {
        self.state.borrow().since
    }

    /// Notes that the server is up, and what it says of itself.
    pub(super) fn greeted(&self, info: Arc<ServerInfo>) {
        *self.log_level.lock() = None;
        self.state.send_if_modified(|state| {
            state.info = Some(info);
            state.since = Some(Instant::now());
            false
        });
        self.up();
    }

    /// Notes that the server is up.
    pub(super) fn up(&self) {
        if self.state.borrow().status == UpstreamStatus::Up {
            return; // the usual case, on every HTTP answer
        }
        if self.set(UpstreamStatus::Up) {
            tracing::info!(server = %self.id, "connected");
        }
    }

    /// Notes that the server is down, and why. Only the first of several reasons is announced:
    /// calls may find any number of them.
    pub(super) fn down(&self, reason: &str) {
        self.note_loss(reason.to_owned().into(), false);
    }

    /// Notes that the server is down, or still is after another attempt. Each reason that differs
    /// from the one before is announced: attempts have pauses between them.
    pub(super) fn lost(&self, loss: Loss) {
        self.note_loss(loss, true);
    }

    fn note_loss(&self, loss: Loss, announces_news: bool) {
        let mut was_down = true;
        let detail = loss.detail.clone();
        let is_noted = self.state.send_if_modified(|state| {
            was_down = state.status.is_down();
            let is_lost = state.enter(UpstreamStatus::Down(loss.reason.as_str().into()));
            if is_lost || was_down {
                let is_news = announces_news && state.loss.detail != loss.detail;
                state.news.losses += u64::from(!was_down || is_news);
                state.loss = loss;
            }
            is_lost || was_down
        });
        if is_noted && !was_down {
            tracing::warn!(server = %self.id, reason = detail, "not connected; connecting again");
        }
    }

    /// Returns why the server's command could not be started, if that is why it is down.
    pub(super) fn start_failure(&self) -> Option<String> {
        let state = self.state.borrow();
        (state.status.is_down() && state.loss.not_started).then(|| state.loss.detail.clone())
    }

    /// Notes that the connection was closed until it is [opened](Self::open) again. The server
    /// counts as up, also if it was down: whether it still is shows when it is needed.
    pub(super) fn idle(&self) {
        if !self.stop.is_cancelled() {
            self.set(UpstreamStatus::Idle);
        }
    }

    /// Notes a state. Streams of events end with [`UpstreamStatus::Closed`].
    pub(super) fn set(&self, to: UpstreamStatus) -> bool {
        self.state.send_if_modified(|state| state.enter(to))
    }

    /// Notes that all that the server lists may have changed.
    pub(super) fn lists_changed(&self) {
        let info = self.info();
        let offered = |list: &&List| info.as_ref().is_none_or(|info| info.offers(**list));
        for list in List::ALL.iter().filter(offered) {
            self.list_changed(*list);
        }
    }

    pub(super) fn list_changed(&self, list: List) {
        let changed = |state: &mut State| state.news.changed[list as usize] += 1;
        self.state.send_modify(changed);
    }

    /// Notes that a resource may hold something else.
    pub(super) fn resource_updated(&self, uri: &str) {
        let concerned = self.watched.concerned(uri);
        self.state.send_modify(|state| {
            state.news.updates += 1;
            if state.updated.len() > self.watched.count() {
                state.updated.retain(|uri, _| self.watched.is_wanted(uri));
            }
            let updates = concerned.into_iter().map(|uri| (uri, state.news.updates));
            state.updated.extend(updates);
        });
    }

    /// Takes a notification about what the server has. Returns `false` for any other.
    pub(super) fn takes(&self, notification: &str, params: Option<&Bytes>) -> bool {
        match notification {
            "notifications/resources/updated" => {
                // one that does not say which may be any
                self.resource_updated(&watched::uri_in(params).unwrap_or_default());
            }
            "notifications/subscriptions/acknowledged" => self.watched.acknowledge(params),
            _ => match List::changed_by(notification) {
                Some(list) => self.list_changed(list),
                None => return false,
            },
        }
        true
    }

    /// Notes that what was read through some instance may not hold any more.
    pub(super) fn stale(&self) {
        self.state.send_modify(|state| state.news.stale += 1);
    }

    /// Adds a subscriber. The state of the moment is its first event; while the first connection is
    /// still being made there is none: the server is not there yet, and that is not a failure.
    pub(super) fn subscribe(&self) -> Events {
        Events::new(self.state.subscribe())
    }
}

impl State {
    /// Returns `true` if that changed the status.
    fn enter(&mut self, to: UpstreamStatus) -> bool {
        // only `open` ends `Idle`, but for the end of all
        let stays = match self.status {
            UpstreamStatus::Idle => to != UpstreamStatus::Closed,
            UpstreamStatus::Closed => true,
            _ => self.status == to,
        };
        if !stays {
            self.status = to;
        }
        !stays
    }
}
