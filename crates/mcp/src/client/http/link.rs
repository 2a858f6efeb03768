//! The HTTP server of calls: its session is opened when needed and renewed when lost.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callward_core::redact::Known as Secrets;
use callward_core::{BoxFuture, Delivery, ErrorKind, Outbound, ToolError, Transport};
use futures_util::FutureExt;
use futures_util::future::{Shared as SharedFuture, WeakShared};
use http::{HeaderMap, HeaderValue, Method, Response};
use hyper_util::client::proxy::matcher::Matcher;
use parking_lot::{Mutex, RwLock};

use super::answer::AnswerBody;
use super::attend;
use super::client::Client;
use super::exchange::{exchange, names_session, unsent};
use super::greeting;
use super::notices::Notices;
use super::outgoing::Outgoing;
use super::reports::Reports;
use super::session::Session;
use super::sse;
use crate::client::answer::RequestError;
use crate::client::ask::Ask;
use crate::client::handshake;
use crate::client::info::ServerInfo;
use crate::client::options::EraChoice;
use crate::client::peer;
use crate::client::shared::{Shared, UpstreamStatus};
use crate::client::target::HttpSpec;
use crate::wire::{Era, ParamHeaders, code};

/// Shorter values of headers are words rather than secrets.
const LEAST_SECRET: usize = 8;

/// After this idle time a session is checked by a ping, as it is after a connection broke.
const MAX_UNCHECKED: Duration = Duration::from_secs(30);

/// Returns the values of a client's headers, and the credentials in them, and those of its query.
fn secrets(client: &Client) -> Secrets {
    let pairs = client.uri.query().unwrap_or_default().split('&');
    let values = pairs.filter_map(|pair| Some(pair.split_once('=')?.1.into()));
    let headers = client.headers.values();
    let headers = headers.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let tokens = client.headers.values().filter_map(|value| {
        let (_scheme, token) = value.to_str().ok()?.split_once(' ')?;
        Some(Cow::Borrowed(token))
    });
    let all = values.chain(headers).chain(tokens);
    Secrets::new(all.filter(|secret| secret.len() >= LEAST_SECRET))
}

/// Where requests go, and what is known of the server.
pub(in crate::client) struct HttpLink {
    pub(super) shared: Arc<Shared>,
    pub(super) client: Result<Client, String>,
    /// The values of the configured headers and of the URL's query.
    pub(super) secrets: Secrets,
    next_id: AtomicU64,
    pub(super) reports: Reports,
    pub(super) notices: Notices,
    known: RwLock<Known>,
    /// The attempt to open a session that runs: all callers wait for the same one.
    attempt: Mutex<Option<WeakShared<Attempt>>>,
    /// Which arguments to mirror, from the last listing.
    mirrored: RwLock<HashMap<String, Arc<ParamHeaders>>>,
}

/// What is known of the server.
pub(super) enum Known {
    /// Nothing that still holds: its era is to be detected.
    Nothing,
    /// It is a legacy one, and has lost our session.
    Legacy,
    Session(Arc<Session>),
}

type Attempt = BoxFuture<'static, Result<Arc<Session>, ToolError>>;

impl HttpLink {
    /// Starts the task that watches the server until the upstream is stopped.
    pub(in crate::client) fn start(shared: &Arc<Shared>, spec: HttpSpec) -> Arc<Self> {
        let HttpSpec { url, headers } = spec;
        let timeout = shared.options.connect_timeout;
        let proxies = Matcher::from_env();
        let client = Client::new(&proxies, url, headers, timeout, shared.connections.clone());
        let link = Arc::new_cyclic(|link| Self {
            shared: shared.clone(),
            secrets: client.as_ref().map(secrets).unwrap_or_default(),
            client,
            next_id: AtomicU64::new(1),
            reports: Reports::default(),
            notices: Notices::start(link.clone()),
            known: RwLock::new(Known::Nothing),
            attempt: Mutex::default(),
            mirrored: RwLock::default(),
        });
        tokio::spawn(attend::run(link.clone()));
        link
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns what is known of a request before it is sent.
    pub(super) fn outbound<'a>(&'a self, id: u64, session: &'a Session) -> Outbound<'a> {
        let mut request = Outbound::new(Transport::Tcp, id);
        request.protocol_version = Some(&session.info.version);
        request.session = session.id();
        if let Ok(client) = &self.client {
            (request.address, request.port) = client.address();
        }
        // the client is built for no other
        request.http_version = Some("1.1");
        request
    }

    /// Takes what a server says of itself, and the session it opened, if any.
    pub(super) fn session_of(&self, info: ServerInfo, id: Option<HeaderValue>) -> Session {
        let headers = self.client.as_ref().map(|client| client.headers.clone());
        Session::new(info, id, headers.unwrap_or_default(), &self.shared.options)
    }

    /// Closes the connections that no request uses.
    pub(super) fn close_idle(&self) {
        if let Ok(client) = &self.client {
            client.pool.clear();
        }
    }

    pub(super) async fn send(
        &self,
        session: &Session,
        method: Method,
        headers: HeaderMap,
        message: Vec<u8>,
    ) -> Result<Response<AnswerBody>, RequestError> {
        let client = self.client.as_ref();
        let client = client.map_err(|error| RequestError::not_sent(error.clone()))?;
        let is_empty = message.is_empty();
        let (body, upload) = Outgoing::new(message.into());
        let answer = client.send(session.target(), method, headers, body).await;
        answer.map_err(|error| unsent(&error, !is_empty && upload.withdraw()))
    }

    /// Sends a request in the session of the moment.
    pub(in crate::client) async fn request(
        self: &Arc<Self>,
        ask: &Ask<'_>,
    ) -> Result<Bytes, RequestError> {
        let mut session = self.greeted().await?;
        if ask.call.is_some() && !self.shared.declares().is_empty() {
            session.listens().await;
        }
        let is_unsafe = ask.call.is_some_and(|call| !call.plan().is_retryable());
        let is_unchecked = || {
            let client = self.client.as_ref();
            session.is_unchecked(MAX_UNCHECKED) || client.is_ok_and(|client| client.pool.lost_one())
        };
        if is_unsafe && session.can_be_forgotten() && is_unchecked() {
            // sent to a session that is lost, it could not be sent again
            let ping = peer::sign_of_life(session.info.era);
            let ping = self.exchange(&session, &ping);
            // a failure that does not show that the session is lost is left to the call to find
            let _ = tokio::time::timeout(handshake::PROBE_TIMEOUT, ping).await;
            session = self.greeted().await?;
        }
        let answer = self.exchange(&session, ask).await;
        // a call may have run: only the retry layer sends it again
        if matches!(answer, Err(RequestError::SessionGone)) && ask.call.is_none() {
            session = self.greeted().await?;
            return self.exchange(&session, ask).await;
        }
        answer
    }

    /// Sends a message that is not a request, if there is a session.
    pub(in crate::client) fn say(&self, message: Vec<u8>) {
        if let Some(session) = self
            .current()
            .filter(|session| session.info.era == Era::Legacy)
        {
            self.notices.push(&session, message);
        }
    }

    /// Returns the session for a request, which was not sent if there is none.
    async fn greeted(self: &Arc<Self>) -> Result<Arc<Session>, RequestError> {
        if self.shared.status() == UpstreamStatus::Closed {
            return Err(RequestError::not_sent("the connection was shut down"));
        }
        let session = self.session().await;
        session.map_err(RequestError::before_the_call)
    }

    /// Returns what the server last stated about itself; does the handshake if nothing is known
    /// yet.
    pub(in crate::client) async fn info(self: &Arc<Self>) -> Result<Arc<ServerInfo>, RequestError> {
        match self.shared.info() {
            Some(info) if self.shared.status() != UpstreamStatus::Closed => Ok(info),
            _ => Ok(self.greeted().await?.info.clone()),
        }
    }

    /// Repeats the handshake, so that what is known of the server is what it states now.
    pub(in crate::client) async fn greet_again(self: &Arc<Self>) -> Result<(), RequestError> {
        *self.known.write() = Known::Nothing;
        self.session().await.map(|_| ())
    }

    /// Returns `true` if the server's era mirrors arguments into headers.
    pub(in crate::client) fn mirrors(&self) -> bool {
        self.current()
            .is_some_and(|session| session.info.era == Era::Modern)
    }

    /// Takes which arguments to mirror, from a fresh listing.
    pub(in crate::client) fn mirror(&self, headers: HashMap<String, Arc<ParamHeaders>>) {
        *self.mirrored.write() = headers;
    }

    /// Returns the session of the moment.
    pub(super) fn current(&self) -> Option<Arc<Session>> {
        match &*self.known.read() {
            Known::Session(session) => Some(session.clone()),
            Known::Nothing | Known::Legacy => None,
        }
    }

    /// Returns the session of the moment, or makes one. A caller that comes while it is made waits
    /// for the same one, and shares its failure.
    pub(super) async fn session(self: &Arc<Self>) -> Result<Arc<Session>, RequestError> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let attempt = {
            let mut attempt = self.attempt.lock();
            // made meanwhile
            if let Some(session) = self.current() {
                return Ok(session);
            }
            let running = attempt.as_ref().and_then(WeakShared::upgrade);
            let running = running.filter(|running| running.peek().is_none());
            running.unwrap_or_else(|| {
                let link = self.clone();
                let made: SharedFuture<Attempt> = async move { link.make().await }.boxed().shared();
                *attempt = made.downgrade();
                made
            })
        };
        attempt.await.map_err(RequestError::Failed)
    }

    /// Makes a session.
    async fn make(self: &Arc<Self>) -> Result<Arc<Session>, ToolError> {
        let was_legacy = matches!(*self.known.read(), Known::Legacy);
        match greeting::greet(self, was_legacy).await {
            Ok(session) => {
                let session = Arc::new(session);
                *self.known.write() = Known::Session(session.clone());
                sse::follow(self, &session);
                let before = self.shared.info();
                self.shared.greeted(session.info.clone());
                let opens = session.info.opens_sessions;
                if before.is_some_and(|before| before.opens_sessions != opens) {
                    // whose instance runs a call is read from the server with each listing
                    self.shared.lists_changed();
                }
                Ok(session)
            }
            Err(error) => {
                let error = error.into_tool_error();
                *self.known.write() = Known::Nothing;
                self.shared.down(&error.message);
                Err(error)
            }
        }
    }

    /// Sends one request in a session, and updates the server's state from its outcome.
    pub(super) async fn exchange(
        self: &Arc<Self>,
        session: &Arc<Session>,
        ask: &Ask<'_>,
    ) -> Result<Bytes, RequestError> {
        let mirrored = match session.info.era {
            Era::Modern => self.mirrored_of(ask),
            Era::Legacy => None,
        };
        let answer = tokio::select! {
            biased;
            answer = exchange(self, session, ask, mirrored.as_deref()) => answer,
            () = self.shared.stop.cancelled() => {
                Err(RequestError::lost("the connection was shut down before the answer"))
            }
        };
        self.note(session, answer.as_ref().map(|_| ()));
        if ask.method == handshake::DISCOVER && answer.as_ref().is_err_and(handshake::shows_legacy)
        {
            // a server of earlier revisions is there now: greet it with the next request
            self.forget_modern();
        }
        answer.map(|(result, _)| result)
    }

    fn mirrored_of(&self, ask: &Ask<'_>) -> Option<Arc<ParamHeaders>> {
        let tool = ask.call?.tool();
        if let Some(known) = self.mirrored.read().get(tool.name().as_str()) {
            return Some(known.clone());
        }
        // not listed through this handle: only the call has a definition
        let schema = tool.definition.input_schema.as_deref()?;
        ParamHeaders::from_schema(schema.get()).ok().map(Arc::new)
    }

    /// Updates the state for later calls.
    fn note(&self, session: &Arc<Session>, answer: Result<(), &RequestError>) {
        // some servers answer 400 with a text where the protocol requires 404 for a lost session
        let is_lost = |message: &str| session.can_be_forgotten() && names_session(message);
        match answer {
            Ok(()) => {
                session.answered();
                self.shared.up();
            }
            Err(RequestError::Refused(error)) => {
                session.answered();
                self.shared.up();
                if error.code == code::UNSUPPORTED_VERSION || is_lost(&error.message) {
                    self.lose(session, Known::Nothing);
                }
            }
            Err(RequestError::SessionGone) => {
                self.lose(session, Known::Legacy);
            }
            Err(RequestError::Failed(error)) => match (error.delivery, error.kind) {
                (Delivery::NotSent, ErrorKind::ConnectFailed) => {
                    session.doubt();
                    self.shared.down(&error.message);
                }
                (_, ErrorKind::ConnectionLost) => session.doubt(),
                // a server of another era seems to answer now: the next call detects it
                (Delivery::Answered, _) if error.code == Some(405) || is_lost(&error.message) => {
                    self.lose(session, Known::Nothing);
                }
                _ => {}
            },
        }
    }

    /// Forgets a session that the server has lost, unless there is another one already. The server
    /// may have been replaced while no request was sent: its tools are listed again. Returns `true`
    /// if it was forgotten.
    pub(super) fn lose(&self, lost: &Arc<Session>, rest: Known) -> bool {
        let mut known = self.known.write();
        let is_current = matches!(&*known, Known::Session(now) if Arc::ptr_eq(now, lost));
        if is_current {
            *known = rest;
            self.shared.lists_changed();
        }
        is_current
    }

    /// Forgets the server's era, so that the next request detects it: the server was down, and may
    /// have been replaced.
    pub(super) fn forget_modern(&self) {
        let mut known = self.known.write();
        if self.shared.options.era == EraChoice::Auto
            && matches!(&*known, Known::Session(session) if session.info.era == Era::Modern)
        {
            *known = Known::Nothing;
        }
    }

    /// Ends the session in good order, if there is one.
    pub(super) async fn end(&self) {
        let known = std::mem::replace(&mut *self.known.write(), Known::Nothing);
        if let Known::Session(session) = known {
            greeting::delete(self, &session).await;
        }
    }
}
