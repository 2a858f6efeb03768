//! What all requests of the endpoint share, and the two methods that only sessions have.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use callward_core::{Caller, CredentialKind};
use futures_util::{Stream, stream};
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::accept::{self, Accepts};
use super::body::Bodies;
use super::resume::{KEPT, OWN, Streams};
use super::session::Session;
use super::session_table::{Client, SessionLimits, SessionTable};
use super::stream::{REPORTS, notifications, respond};
use super::{HttpOptions, Identify, Refused, mirrored};
use crate::server::Backend;
use crate::server::answer::Answer;
use crate::server::error::Fault;
use crate::server::request::Request;
use crate::server::service::Dispatcher;
use crate::server::subscription::Subscription;
use crate::wire::{Era, LATEST_LEGACY, header};

/// What all requests of the endpoint share.
pub(super) struct Endpoint {
    pub(super) dispatcher: Dispatcher,
    pub(super) options: HttpOptions,
    pub(super) bodies: Bodies,
    pub(super) identify: Arc<dyn Identify>,
    sessions: Mutex<SessionTable>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

impl Endpoint {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        identify: Arc<dyn Identify>,
        options: HttpOptions,
    ) -> Self {
        let ended = Arc::clone(&backend);
        let ends = move |caller: &Arc<Caller>| ended.session_ended(caller);
        let limits = SessionLimits {
            all: options.max_sessions,
            per_client: options.max_sessions_per_client,
            idle: options.session_idle,
        };
        Self {
            dispatcher: Dispatcher::new(backend, options.drain.clone()),
            sessions: Mutex::new(SessionTable::new(limits, Arc::new(ends))),
            bodies: Bodies::new(options.max_body, options.max_bodies, options.body_timeout),
            identify,
            options,
        }
    }

    /// Opens a session for the caller of a request, which is an `initialize`.
    pub(super) fn open_session(
        &self,
        caller: &Arc<Caller>,
        parts: &Parts,
        request: &Request,
    ) -> Result<Arc<Session>, Fault> {
        let counted = match caller.credential.kind {
            CredentialKind::None => {
                let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
                peer.map(|ConnectInfo(peer)| peer.ip().to_canonical())
                    .filter(|address| !self.options.proxies.contains(address))
                    .map(Client::Address)
            }
            _ => Some(Client::Principal(caller.principal.clone())),
        };
        let open = || {
            let timer = self.dispatcher.session("tcp");
            let client = request.client_of_session();
            Session::new(caller, client, request.capabilities(), timer)
        };
        let opened = self.sessions.lock().open(Instant::now(), counted, open);
        opened.map_err(|full| {
            let whose = match full.of_client {
                true => " of this client",
                false => "",
            };
            let text = format!(
                "{} sessions{whose} are open; end those that are not used any more",
                full.open
            );
            Fault::overloaded(text, Some(full.retry_after))
        })
    }

    /// Finds the session of this caller that a request names; `None` if it names none.
    pub(super) fn session(
        &self,
        caller: &Caller,
        parts: &Parts,
    ) -> Result<Option<Arc<Session>>, Fault> {
        let id = header::single(&parts.headers, &header::SESSION_ID).map_err(|why| {
            Fault::transport(StatusCode::BAD_REQUEST, format!("Mcp-Session-Id {why}"))
        })?;
        let Some(id) = id else {
            return Ok(None);
        };
        let find = |id| {
            let mut sessions = self.sessions.lock();
            sessions.find(Instant::now(), id, &caller.principal)
        };
        let found = Uuid::parse_str(id).ok().and_then(find);
        found.map(Some).ok_or_else(|| {
            Fault::transport(StatusCode::NOT_FOUND, "no such session: initialize again")
        })
    }

    /// Opens the notification stream of a session: GET.
    pub(super) fn listen(&self, caller: &Arc<Caller>, parts: &Parts) -> Result<Response, Fault> {
        if !Accepts::of(&parts.headers).events {
            return Err(not_acceptable(accept::EVENT_STREAM));
        }
        let session = self.required_session(caller, parts)?;
        let last_event = parts.headers.get(&header::LAST_EVENT_ID);
        if let Some(id) = last_event.filter(|id| !id.is_empty()) {
            let known = id.to_str().ok().and_then(|id| session.streams.resume(id));
            if let Some(stream) = known {
                return Ok(respond(stream.events(), self.options.keep_alive));
            }
            // a stream of its own begins again, one that answers a call does not
            if !id.as_bytes().starts_with(OWN.as_bytes()) {
                let secs = KEPT.as_secs();
                let text = format!("no stream goes on after the event {id:?}: it is kept {secs} s");
                return Err(Fault::transport(StatusCode::BAD_REQUEST, text));
            }
        }
        let streams = session.streams.clone();
        let replaced = session.open_stream();
        let (out, asked) = mpsc::channel(REPORTS);
        session.peer.reach_by(out);
        let backend = &*self.dispatcher.backend;
        let caller = session.caller_of(caller);
        let subscriber = session.peer.subscriber(backend, &caller);
        let end = async move {
            replaced.cancelled().await;
            // held by the stream, so that it does not count as idle
            drop(session);
        };
        let subscription = Subscription::legacy(subscriber);
        let messages = self.notifications(&caller, parts, subscription, Some(asked), end);
        Ok(self.respond(parts, Some((&streams, OWN)), messages))
    }

    /// Responds with a stream of messages, which can be resumed if it is of a session.
    pub(super) fn respond<S>(
        &self,
        parts: &Parts,
        streams: Option<(&Arc<Streams>, &'static str)>,
        messages: S,
    ) -> Response
    where
        S: Stream<Item = Answer> + Send + 'static,
    {
        let pause = self.options.keep_alive;
        let Some((streams, prefix)) = streams else {
            return respond(messages, pause);
        };
        // clients of older revisions read an empty event as a message
        let version = mirrored::stated_version(&parts.headers);
        let primes = version.is_ok_and(|version| version == Some(LATEST_LEGACY));
        respond(streams.open(prefix, messages, primes).events(), pause)
    }

    /// Ends a session: DELETE.
    pub(super) fn end_session(&self, caller: &Caller, parts: &Parts) -> Result<Response, Fault> {
        let session = self.required_session(caller, parts)?;
        self.sessions.lock().close(session.id);
        Ok(IntoResponse::into_response(StatusCode::NO_CONTENT))
    }

    /// Returns the notifications of a subscription, and what servers ask, until `end`, a shutdown,
    /// or the end of the sender's credential.
    pub(super) fn notifications(
        &self,
        caller: &Caller,
        parts: &Parts,
        subscription: Subscription,
        asked: Option<mpsc::Receiver<Answer>>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> impl Stream<Item = Answer> + Send + 'static {
        let shutdown = self.options.shutdown.clone();
        let refused = refused(self.identify.clone(), parts.clone());
        let ended = async move {
            tokio::select! {
                () = end => {}
                () = shutdown.cancelled() => {}
                () = refused => {}
            }
        };
        let changes = self.dispatcher.backend.changes(caller);
        notifications(subscription, changes, asked, ended)
    }

    /// Finds the session that GET and DELETE are about.
    fn required_session(&self, caller: &Caller, parts: &Parts) -> Result<Arc<Session>, Fault> {
        let version = mirrored::stated_version(&parts.headers)?;
        if version.is_some_and(|version| Era::of(version) == Era::Modern) {
            let text = "this revision has no sessions: use POST";
            return Err(Fault::transport(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        let missing = || Fault::transport(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing");
        self.session(caller, parts)?.ok_or_else(missing)
    }
}

/// Answers with a message as plain JSON.
pub(super) fn reply(status: StatusCode, answer: Answer) -> Response {
    let [head, body, tail] = answer.into_pieces();
    let length = head.len() + body.len() + tail.len();
    let body = match body.is_empty() {
        true => Body::from(head),
        false => Body::from_stream(stream::iter([head, body, tail].map(Ok::<_, Infallible>))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static(accept::JSON);
    response.headers_mut().insert(CONTENT_TYPE, json);
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

/// Answers with a refusal.
pub(super) fn refuse(fault: &Fault) -> Response {
    let mut response = reply(fault.status, Answer::refusal(fault));
    if fault.status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("POST");
        response.headers_mut().insert(ALLOW, allowed);
    }
    set_retry_after(&mut response, fault.retry_after);
    response
}

/// How often the sender of an open request is identified again.
const IDENTIFIED_EVERY: Duration = Duration::from_secs(10);

/// Waits until the sender of a request is refused: its credential was revoked, or has expired. One
/// that cannot be checked is no refusal.
async fn refused(identify: Arc<dyn Identify>, parts: Parts) {
    loop {
        tokio::time::sleep(IDENTIFIED_EVERY).await;
        match identify.identify(&parts).await {
            Err(refused) if !refused.status.is_server_error() => return,
            _ => {}
        }
    }
}

/// Says when the client may try again, in whole seconds and not too early.
pub(super) fn set_retry_after(response: &mut Response, after: Option<Duration>) {
    if let Some(time) = after {
        let seconds = time
            .as_secs()
            .saturating_add(u64::from(time.subsec_nanos() > 0));
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
}

/// Answers a request whose sender is not known, or not allowed.
pub(super) fn unidentified(refused: Refused) -> Response {
    let fault = match refused.status.is_server_error() {
        // not the client's fault
        true => Fault::overloaded(refused.message, refused.retry_after),
        false => Fault::transport(refused.status, refused.message),
    };
    let mut response = refuse(&fault);
    if let Some(challenge) = refused.challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Refuses an `Accept` that lacks media types of the answer.
pub(super) fn not_acceptable(needed: &str) -> Fault {
    let text = format!("Accept must list {needed}");
    Fault::transport(StatusCode::NOT_ACCEPTABLE, text)
}
