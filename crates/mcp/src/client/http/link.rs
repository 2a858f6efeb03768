//! The HTTP server of calls: its session is opened when needed and renewed when lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callward_core::{Delivery, ErrorKind, Outbound, Transport};
use http::HeaderMap;
use http::Response;
use parking_lot::RwLock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::AnswerBody;
use super::attend;
use super::client::Client;
use super::exchange::{self, exchange, unsent};
use super::notices::Notices;
use super::outgoing::Outgoing;
use super::reports::Reports;
use super::session::Session;
use super::sessions;
use crate::client::answer::RequestError;
use crate::client::ask::Ask;
use crate::client::builder::EraChoice;
use crate::client::handshake;
use crate::client::info::ServerInfo;
use crate::client::peer;
use crate::client::shared::{Shared, UpstreamStatus};
use crate::client::target::HttpSpec;
use crate::wire::{Era, LATEST, ParamHeaders, code};

/// Where requests go.
pub(super) struct Endpoint {
    pub(super) shared: Arc<Shared>,
    client: Result<Client, String>,
    next_id: AtomicU64,
    pub(super) reports: Reports,
    pub(super) notices: Notices,
}

/// The current session, and how to open another.
pub(in crate::client) struct HttpLink {
    pub(super) endpoint: Arc<Endpoint>,
    session: RwLock<Option<Arc<Session>>>,
    /// Held while a session is opened, so that concurrent calls open only one.
    making: tokio::sync::Mutex<()>,
    /// How many attempts failed, and the last failure: who waited for an attempt that failed
    /// shares its failure instead of trying in turn.
    failures: AtomicU64,
    failure: RwLock<Option<callward_core::ToolError>>,
    /// Which arguments to mirror, from the last listing.
    mirrored: RwLock<HashMap<String, Arc<ParamHeaders>>>,
}

impl Endpoint {
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

    /// Returns the headers that every request to this server carries.
    pub(super) fn headers(&self) -> HeaderMap {
        let client = self.client.as_ref();
        client.map_or_else(|_| HeaderMap::new(), |client| client.headers.clone())
    }

    /// Closes the connections that no request uses.
    pub(super) fn close_idle(&self) {
        if let Ok(client) = &self.client {
            client.pool.clear();
        }
    }

    pub(super) async fn send(
        &self,
        method: http::Method,
        headers: HeaderMap,
        message: Vec<u8>,
    ) -> Result<Response<AnswerBody>, RequestError> {
        let client = self
            .client
            .as_ref()
            .map_err(|error| RequestError::not_sent(error.clone()))?;
        let is_empty = message.is_empty();
        let (body, upload) = Outgoing::new(message.into());
        client
            .send(method, headers, body)
            .await
            .map_err(|error| unsent(&error, !is_empty && upload.withdraw()))
    }
}

impl HttpLink {
    /// Starts the task that watches the server for as long as `stop` does not fire.
    pub(in crate::client) fn start(
        shared: &Arc<Shared>,
        spec: HttpSpec,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let (url, headers) = spec.into_parts();
        let link = Arc::new(Self {
            endpoint: Arc::new_cyclic(|endpoint| Endpoint {
                shared: shared.clone(),
                client: Client::new(
                    url,
                    headers,
                    shared.options.connect_timeout,
                    shared.options.connections.clone(),
                ),
                next_id: AtomicU64::new(1),
                reports: Reports::default(),
                notices: Notices::start(endpoint.clone()),
            }),
            session: RwLock::new(None),
            making: tokio::sync::Mutex::new(()),
            failures: AtomicU64::new(0),
            failure: RwLock::new(None),
            mirrored: RwLock::default(),
        });
        tokio::spawn(attend::run(link.clone(), stop.clone()));
        link
    }

    /// Sends a request in the session of the moment.
    pub(in crate::client) async fn request(&self, ask: &Ask<'_>) -> Result<Bytes, RequestError> {
        self.check_open()?;
        let session = self
            .session()
            .await
            .map_err(RequestError::before_the_call)?;
        let session = match ask.tool_call() {
            Some(call) if !call.plan().is_retryable() => self.checked(session).await?,
            _ => session,
        };
        let answer = self.exchange(&session, ask).await;
        // a call may have run: only the retry layer sends it again
        if matches!(answer, Err(RequestError::SessionGone)) && ask.tool_call().is_none() {
            let renewed = self.renewed(&session).await;
            let session = renewed.map_err(RequestError::before_the_call)?;
            return self.exchange(&session, ask).await;
        }
        answer
    }

    /// Checks that the server still knows a session that was idle: a call that must not run twice
    /// could not be sent again otherwise.
    async fn checked(&self, session: Arc<Session>) -> Result<Arc<Session>, RequestError> {
        if !session.can_be_forgotten() || session.idle() <= MAX_UNCHECKED {
            return Ok(session);
        }
        let ping = peer::sign_of_life(session.info.era);
        let timeout = self.endpoint.shared.options.probe_timeout;
        // any other failure is left to the call to find
        match tokio::time::timeout(timeout, self.exchange(&session, &ping)).await {
            Ok(Err(RequestError::SessionGone)) => {
                let renewed = self.renewed(&session).await;
                renewed.map_err(RequestError::before_the_call)
            }
            _ => Ok(session),
        }
    }

    /// Returns what the server last stated about itself; does the handshake if nothing is known
    /// yet.
    pub(in crate::client) async fn info(&self) -> Result<Arc<ServerInfo>, RequestError> {
        self.check_open()?;
        if let Some(info) = self.endpoint.shared.info() {
            return Ok(info);
        }
        let session = self.session().await;
        session
            .map(|session| session.info.clone())
            .map_err(RequestError::before_the_call)
    }

    /// Repeats the handshake and returns what the server states about itself now.
    pub(in crate::client) async fn greet_again(&self) -> Result<Arc<ServerInfo>, RequestError> {
        let session = match self.current() {
            Some(session) => self.renewed(&session).await?,
            None => self.session().await?,
        };
        Ok(session.info.clone())
    }

    fn check_open(&self) -> Result<(), RequestError> {
        if self.endpoint.shared.current_status() == UpstreamStatus::Closed {
            return Err(RequestError::not_sent("the connection was shut down"));
        }
        Ok(())
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

    pub(super) fn current(&self) -> Option<Arc<Session>> {
        self.session.read().clone()
    }

    /// Returns the session of the moment, or makes one.
    pub(super) async fn session(&self) -> Result<Arc<Session>, RequestError> {
        match self.current() {
            Some(session) if session.is_lost() => self.renewed(&session).await,
            Some(session) => Ok(session),
            None => self.make(None).await,
        }
    }

    /// Makes another session in place of a lost one.
    pub(super) async fn renewed(&self, lost: &Arc<Session>) -> Result<Arc<Session>, RequestError> {
        self.make(Some(lost)).await
    }

    /// Sends one request in a session, and updates the server's state from its outcome.
    pub(super) async fn exchange(
        &self,
        session: &Arc<Session>,
        ask: &Ask<'_>,
    ) -> Result<Bytes, RequestError> {
        let mirrored = if session.info.era == Era::Modern {
            self.mirrored_of(ask)
        } else {
            None
        };
        let answer = tokio::select! {
            biased;
            answer = exchange(&self.endpoint, session, ask, mirrored.as_deref()) => answer,
            () = self.endpoint.shared.stop().cancelled() => {
                Err(RequestError::lost("the connection was shut down before the answer"))
            }
        };
        self.note(session, answer.as_ref().map(|_| ()));
        if ask.method == handshake::DISCOVER && answer.as_ref().is_err_and(handshake::shows_legacy)
        {
            // a server of earlier revisions is there now: greet it with the next request
            self.forget_modern();
        }
        answer.map(|answered| answered.result)
    }

    fn mirrored_of(&self, ask: &Ask<'_>) -> Option<Arc<ParamHeaders>> {
        let tool = ask.tool_call()?.tool();
        if let Some(known) = self.mirrored.read().get(tool.name().as_str()) {
            return Some(known.clone());
        }
        // not listed through this handle: only the call has a definition
        let schema = tool.definition.input_schema.as_deref()?;
        ParamHeaders::from_schema(schema.get()).ok().map(Arc::new)
    }

    /// Updates the state for later calls.
    fn note(&self, session: &Arc<Session>, answer: Result<(), &RequestError>) {
        let shared = &self.endpoint.shared;
        match answer {
            Ok(()) => {
                session.answered();
                shared.up();
            }
            Err(RequestError::Refused(error) | RequestError::HeadersRefused(error)) => {
                session.answered();
                shared.up();
                if error.code == code::UNSUPPORTED_VERSION || lost_session(session, &error.message)
                {
                    self.forget(session);
                }
            }
            Err(RequestError::SessionGone) => session.lose(),
            Err(RequestError::Failed(error)) => {
                if error.delivery() == Delivery::NotSent && error.kind() == ErrorKind::ConnectFailed
                {
                    shared.down(error.message());
                } else if error.delivery() == Delivery::Answered
                    && (error.code() == Some(405) || lost_session(session, error.message()))
                {
                    // a server of another era seems to answer now: the next call detects it
                    self.forget(session);
                }
            }
        }
    }

    pub(super) fn forget(&self, lost: &Arc<Session>) {
        let mut session = self.session.write();
        if session.as_ref().is_some_and(|now| Arc::ptr_eq(now, lost)) {
            *session = None;
        }
    }

    /// Forgets the server's era, so that the next request detects it: the server was down, and may
    /// have been replaced.
    pub(super) fn forget_modern(&self) {
        let is_auto = self.endpoint.shared.options.era == EraChoice::Auto;
        let mut session = self.session.write();
        if is_auto
            && session
                .as_ref()
                .is_some_and(|now| now.info.era == Era::Modern)
        {
            *session = None;
        }
    }

    /// Makes a session, unless another call did meanwhile.
    async fn make(&self, lost: Option<&Arc<Session>>) -> Result<Arc<Session>, RequestError> {
        let before = self.failures.load(Ordering::Acquire);
        let _making = self.making.lock().await;
        if let Some(now) = self.current()
            && lost.is_none_or(|lost| !Arc::ptr_eq(lost, &now))
        {
            return Ok(now);
        }
        if self.failures.load(Ordering::Acquire) != before
            && let Some(failure) = self.failure.read().clone()
        {
            return Err(RequestError::Failed(failure));
        }
        let shared = &self.endpoint.shared;
        let timeout = shared.options.connect_timeout;
        let began = Instant::now();
        let greeted = tokio::time::timeout(timeout, self.greet(lost)).await;
        let greeted = greeted.unwrap_or_else(|_| {
            let text = format!("the server did not answer the greeting within {timeout:?}");
            Err(RequestError::not_sent(text))
        });
        match greeted {
            Ok(session) => {
                let left = timeout.saturating_sub(began.elapsed());
                let session = Arc::new(self.completed(session, left).await);
                *self.session.write() = Some(session.clone());
                *self.failure.write() = None;
                let before = shared.info();
                shared.set_info(session.info.clone());
                shared.up();
                let opens = session.info.opens_sessions;
                if before.is_some_and(|before| before.opens_sessions != opens) {
                    // whose instance runs a call is read from the server with each listing
                    shared.tools_changed();
                }
                Ok(session)
            }
            Err(error) => {
                let error = error.into_tool_error();
                *self.session.write() = None;
                *self.failure.write() = Some(error.clone());
                self.failures.fetch_add(1, Ordering::Release);
                shared.down(error.message());
                Err(RequestError::Failed(error))
            }
        }
    }

    /// Finds out whether a modern server opens sessions too, within the time that is left.
    async fn completed(&self, mut session: Session, left: Duration) -> Session {
        let options = &self.endpoint.shared.options;
        if options.era == EraChoice::Auto && session.info.era == Era::Modern {
            let names_legacy = session.info.names_legacy;
            let left = left.min(options.probe_timeout);
            let opens = sessions::are_opened(&self.endpoint, names_legacy, left).await;
            Arc::make_mut(&mut session.info).opens_sessions |= opens;
        }
        session
    }

    /// Detects the era and greets the server in it. The era belongs to the server, so one that lost
    /// a session is not asked again; if it has changed, this fails and the next greeting asks.
    async fn greet(&self, lost: Option<&Arc<Session>>) -> Result<Session, RequestError> {
        let options = &self.endpoint.shared.options;
        let was_legacy = lost.is_some_and(|lost| lost.info.era == Era::Legacy);
        if options.era == EraChoice::Legacy || was_legacy {
            return sessions::open(&self.endpoint).await;
        }
        let session = |info| Session::new(info, None, self.endpoint.headers(), options);
        let probe = Arc::new(session(ServerInfo::new(LATEST)));
        let ask = handshake::discover();
        let answer = exchange(&self.endpoint, &probe, &ask, None);
        let answer = tokio::time::timeout(options.probe_timeout, answer).await;
        let modern = match answer {
            Ok(answer) => handshake::judge(answer.map(|answered| answered.result), options.era)?,
            // silence means legacy
            Err(_) => handshake::judge(Ok(Bytes::new()), options.era)?,
        };
        match modern {
            Some(info) => Ok(session(info)),
            None => sessions::open(&self.endpoint).await,
        }
    }

    /// Ends the session in good order, if there is one.
    pub(super) async fn end(&self) {
        let Some(session) = self.session.write().take() else {
            return;
        };
        if session.can_be_forgotten() {
            sessions::delete(&self.endpoint, &session).await;
        }
    }
}

/// After this idle time a session is checked by a ping.
const MAX_UNCHECKED: Duration = Duration::from_secs(30);

/// Recognises servers that answer 400 with a text where the protocol requires 404 for a lost
/// session.
fn lost_session(session: &Session, message: &str) -> bool {
    session.can_be_forgotten() && exchange::names_session(message)
}
