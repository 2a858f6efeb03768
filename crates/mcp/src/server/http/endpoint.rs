//! What all requests of the endpoint share, and the two methods that only sessions have.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use callward_core::{Caller, ClientInfo, Delivery, ErrorKind, Principal, ToolError};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::accept::{self, Accepts};
use super::body::{Bodies, Pieces};
use super::session::Session;
use super::session_table::{Client, SessionLimits, SessionTable};
use super::{HttpOptions, cors, guard, mirrored, stream};
use crate::server::Backend;
use crate::server::answer::Answer;
use crate::server::error::Fault;
use crate::server::service::Dispatcher;
use crate::wire::{Era, RequestId, header};

/// What all requests of the endpoint share.
pub(super) struct Endpoint<B> {
    pub(super) dispatcher: Dispatcher<B>,
    pub(super) options: HttpOptions,
    pub(super) bodies: Bodies,
    sessions: Mutex<SessionTable>,
    anonymous: Arc<Caller>,
}

impl<B: Backend> Endpoint<B> {
    pub(super) fn new(backend: Arc<B>, options: HttpOptions) -> Self {
        let dispatcher = Dispatcher::new(backend);
        let ends = dispatcher.ends_sessions();
        let limits = SessionLimits {
            all: options.max_sessions,
            per_client: options.max_sessions_per_client,
            idle: options.session_idle,
        };
        Self {
            dispatcher,
            sessions: Mutex::new(SessionTable::new(limits, ends)),
            bodies: Bodies::new(options.max_body, options.max_bodies, options.body_timeout),
            anonymous: Arc::new(Caller::new(Principal::new(ANONYMOUS))),
            options,
        }
    }

    /// Admits a request if its host and origin are allowed.
    pub(super) fn check_source(&self, request: &Request) -> Result<(), Fault> {
        guard::check(
            &self.options.allowed_hosts,
            &self.options.allowed_origins,
            request.uri(),
            request.headers(),
        )
    }

    /// Returns the origin of a request if it has one that is allowed: its page may read the answer.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        cors::allowed(&self.options.allowed_origins, headers)
    }

    /// Opens a session for the principal of the request, and a client that introduced itself so.
    pub(super) fn open_session(
        &self,
        extensions: &Extensions,
        client: Option<Arc<ClientInfo>>,
    ) -> Result<Arc<Session>, Fault> {
        let principal = principal(extensions);
        let counted = match principal {
            Some(principal) => Some(Client::Principal(principal.clone())),
            None => extensions
                .get::<ConnectInfo<SocketAddr>>()
                .map(|ConnectInfo(client)| client.ip().to_canonical())
                .filter(|address| !self.options.proxies.contains(address))
                .map(Client::Address),
        };
        let principal = principal.unwrap_or(&self.anonymous.principal).clone();
        let session = Session::new(Uuid::new_v4(), principal, client);
        let opened = self.sessions.lock().open(Instant::now(), session, counted);
        if let (Ok(session), Some(timer)) = (&opened, self.dispatcher.session("tcp")) {
            session.timed_by(timer);
        }
        opened.map_err(|full| {
            let whose = match full.of_client {
                true => " of this client",
                false => "",
            };
            let open = full.open;
            let text =
                format!("{open} sessions{whose} are open; end those that are not used any more");
            let error = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text);
            let error = error.with_retry_after(full.retry_after);
            Fault::runtime(StatusCode::SERVICE_UNAVAILABLE, &error)
        })
    }

    /// Finds the session a request names; `None` if it names none.
    pub(super) fn session(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Option<Arc<Session>>, Fault> {
        let mut ids = headers.get_all(header::SESSION_ID).iter();
        let Some(id) = ids.next() else {
            return Ok(None);
        };
        if ids.next().is_some() {
            let reason = "Mcp-Session-Id is there twice";
            return Err(Fault::transport(StatusCode::BAD_REQUEST, reason));
        }
        let id = id.to_str().ok().and_then(|id| Uuid::parse_str(id).ok());
        let principal = principal(extensions).unwrap_or(&self.anonymous.principal);
        id.and_then(|id| {
            self.sessions
                .lock()
                .find(Instant::now(), id, Some(principal))
        })
        .map(Some)
        .ok_or_else(|| Fault::transport(StatusCode::NOT_FOUND, "no such session: initialize again"))
    }

    /// Returns the caller of a request.
    pub(super) fn caller(&self, extensions: &Extensions, session: Option<&Session>) -> Arc<Caller> {
        if let Some(session) = session {
            return Arc::clone(&session.caller);
        }
        if let Some(caller) = extensions.get::<Arc<Caller>>() {
            return Arc::clone(caller);
        }
        match extensions.get::<Principal>() {
            Some(principal) => Arc::new(Caller::new(principal.clone())),
            None => Arc::clone(&self.anonymous),
        }
    }
}

/// Opens the notification stream of a session: GET.
pub(super) fn listen<B: Backend>(
    endpoint: &Endpoint<B>,
    request: &Request,
) -> Result<Response, Fault> {
    if !Accepts::of(request.headers()).events {
        return Err(not_acceptable());
    }
    let session = required_session(endpoint, request)?;
    let (changes, shutdown) = (
        endpoint.dispatcher.changes(),
        endpoint.options.shutdown.clone(),
    );
    let messages = stream::session_messages(session, changes, shutdown);
    Ok(stream::respond(messages, endpoint.options.keep_alive))
}

/// Ends a session: DELETE.
pub(super) fn end_session<B: Backend>(
    endpoint: &Endpoint<B>,
    request: &Request,
) -> Result<Response, Fault> {
    let session = required_session(endpoint, request)?;
    endpoint.sessions.lock().close(session.id);
    Ok(status(StatusCode::NO_CONTENT))
}

/// Answers with a message as plain JSON.
pub(super) fn reply(status: StatusCode, answer: Answer) -> Response {
    let mut response = Response::new(Body::new(Pieces::new(answer.into_pieces())));
    *response.status_mut() = status;
    let json = HeaderValue::from_static(accept::JSON);
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Answers with a refusal.
pub(super) fn refuse(id: Option<&RequestId>, fault: &Fault) -> Response {
    let mut response = reply(fault.status, Answer::error(id, &fault.error));
    if fault.status == StatusCode::METHOD_NOT_ALLOWED {
        let post = HeaderValue::from_static("POST");
        response.headers_mut().insert(ALLOW, post);
    }
    if let Some(time) = fault.retry_after {
        // whole seconds, and not too early
        let seconds = time
            .as_secs()
            .saturating_add(u64::from(time.subsec_nanos() > 0));
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Answers without a body.
pub(super) fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub(super) fn not_acceptable() -> Fault {
    let text = "Accept must list application/json and text/event-stream";
    Fault::transport(StatusCode::NOT_ACCEPTABLE, text)
}

/// The principal of requests without an authenticated one.
const ANONYMOUS: &str = "anonymous";

fn principal(extensions: &Extensions) -> Option<&Principal> {
    match extensions.get::<Arc<Caller>>() {
        Some(caller) => Some(&caller.principal),
        None => extensions.get(),
    }
}

/// Finds the session that GET and DELETE are about.
fn required_session<B: Backend>(
    endpoint: &Endpoint<B>,
    request: &Request,
) -> Result<Arc<Session>, Fault> {
    let headers = request.headers();
    let version = mirrored::stated_version(headers)?;
    if version.is_some_and(|version| Era::of(version) == Era::Modern) {
        return Err(Fault::transport(
            StatusCode::METHOD_NOT_ALLOWED,
            "this revision has no sessions: use POST",
        ));
    }
    endpoint
        .session(headers, request.extensions())?
        .ok_or_else(|| Fault::transport(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing"))
}
