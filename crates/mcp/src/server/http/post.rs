//! Takes one message: POST.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use callward_core::{Caller, Method, Transport};
use futures_util::future::Either;
use futures_util::{StreamExt, stream};
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::sleep;

use super::accept::{self, Accepts};
use super::endpoint::{Endpoint, not_acceptable, reply, set_retry_after};
use super::mirrored;
use super::resume::OF_CALL;
use super::session::Session;
use super::stream::{REPORTS, call_messages};
use crate::large;
use crate::server::answer::Answer;
use crate::server::arrival::Arrival;
use crate::server::error::Fault;
use crate::server::request::{Request, cancelled_id, method, receive};
use crate::server::running::RunningCall;
use crate::server::service::Step;
use crate::wire::{Era, Message, header};

/// Answers a message: POST.
pub(super) async fn take(
    endpoint: &Endpoint,
    caller: &Arc<Caller>,
    parts: &Parts,
    body: Body,
) -> Result<Response, Fault> {
    let accepts = Accepts::of(&parts.headers);
    if !accepts.json {
        return Err(not_acceptable(accept::PRESCRIBED));
    }
    if !header::is_of(&parts.headers, accept::JSON) {
        return Err(Fault::transport(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type must be application/json",
        ));
    }
    // held until the request is answered, as the message borrows its bytes
    let (body, _held) = endpoint.bodies.read(body).await?;
    let one = &READING[usize::from(body.len() > VERY_LARGE)];
    match large::read(one, body.len(), move || receive(&body)).await? {
        Either::Left(mut request) => {
            let answered = async {
                mirrored::take_key(&parts.headers, &mut request)?;
                answer(endpoint, caller, parts, accepts, &request).await
            };
            let answered = answered.await;
            answered.map_err(|fault| fault.under(Some(&request.id)))
        }
        Either::Right(other) => {
            mirrored::stated_version(&parts.headers)?;
            if let Some(session) = endpoint.session(caller, parts)? {
                note(endpoint, caller, &session, other);
            }
            Ok(IntoResponse::into_response(StatusCode::ACCEPTED))
        }
    }
}

/// Takes a notification or a response of a session.
fn note(endpoint: &Endpoint, caller: &Arc<Caller>, session: &Session, message: Message) {
    match message {
        Message::Notification { method, params } => match method.as_str() {
            method::CANCELLED => {
                if let Some(id) = cancelled_id(params.as_ref()) {
                    session.calls.cancel(&id);
                }
            }
            method::ROOTS_CHANGED => {
                let backend = &endpoint.dispatcher.backend;
                backend.roots_changed(&session.caller_of(caller));
            }
            _ => {}
        },
        Message::Response { id, outcome } => session.peer.answered(id.as_ref(), outcome),
        Message::Request { .. } => {}
    }
}

/// A permit to read large requests of at most [`VERY_LARGE`] bytes, and one for longer ones.
static READING: [Semaphore; 2] = [const { Semaphore::const_new(1) }; 2];
const VERY_LARGE: usize = 1024 * 1024;

async fn answer(
    endpoint: &Endpoint,
    caller: &Arc<Caller>,
    parts: &Parts,
    accepts: Accepts,
    request: &Request,
) -> Result<Response, Fault> {
    let era = era(parts, request)?;
    let is_handshake = era == Era::Legacy && request.method == method::INITIALIZE;
    let session = match era {
        Era::Modern => {
            mirrored::check_version(&parts.headers, request)?;
            request.check_modern()?;
            None
        }
        Era::Legacy if is_handshake => None,
        Era::Legacy => endpoint.session(caller, parts)?,
    };
    // a modern call waits, too: which headers it must have is known once its tool is listed
    if (era == Era::Modern || request.relayed != Some(Method::CallTool))
        && let Some(started) = endpoint.dispatcher.starting(request)
    {
        started.await;
    }
    if era == Era::Modern {
        let known = (&*endpoint.dispatcher.backend, caller);
        mirrored::check(&parts.headers, request, known)?;
    }
    let (of_call, client) = match &session {
        Some(session) => (session.caller_of(caller), session.client.clone()),
        None => (caller.clone(), None),
    };
    let mut arrival = Arrival::new(era, of_call, Transport::Tcp, client);
    arrival.add_headers(parts);
    let mut reports = None;
    arrival.client = session.as_ref().map(|session| session.peer.clone());
    if accepts.events && (arrival.reaches(request) || request.progress_token().is_some()) {
        let (out, queue) = mpsc::channel(REPORTS);
        arrival.reports = Some(out.clone());
        reports = Some((out, queue));
    }
    match endpoint.dispatcher.serve(request, arrival)? {
        Step::Done(answer) => {
            let mut response = reply(StatusCode::OK, answer);
            if is_handshake {
                // opened last: a refused handshake leaves no session behind
                let session = endpoint.open_session(caller, parts, request)?;
                if let Ok(id) = HeaderValue::from_str(&session.id.to_string()) {
                    response.headers_mut().insert(&header::SESSION_ID, id);
                }
            }
            Ok(response)
        }
        // the call lives in the response, which is dropped when the client goes away
        Step::Call(call) => {
            let streams = session.as_ref().map(|session| session.streams.clone());
            let answer = run(call, session);
            let Some((out, mut queue)) = reports else {
                return Ok(called(endpoint, parts, answer.await));
            };
            let mut answer = Box::pin(answer);
            let keep_alive = endpoint.options.keep_alive;
            // as a stream only if there is a report, or once a comment is due
            let begun = tokio::select! {
                biased;
                first = queue.recv() => Err(first),
                answer = &mut answer => Ok(answer),
                () = sleep(keep_alive) => Err(None),
            };
            let (first, answer) = match begun {
                Err(first) => (first, Either::Left(answer)),
                Ok(answer) => match queue.try_recv() {
                    Ok(first) => (Some(first), Either::Right(ready(answer))),
                    Err(_) => return Ok(called(endpoint, parts, answer)),
                },
            };
            let messages = stream::iter(first).chain(call_messages(answer, (out, queue)));
            Ok(endpoint.respond(
                parts,
                streams.as_ref().map(|known| (known, OF_CALL)),
                messages,
            ))
        }
        Step::Listen(..) if !accepts.events => Err(not_acceptable(accept::PRESCRIBED)),
        Step::Listen(subscription, inbound) => {
            let backend = &*endpoint.dispatcher.backend;
            let subscription = subscription.open(backend, caller, inbound).await;
            let messages = endpoint.notifications(caller, parts, subscription, None, pending());
            Ok(endpoint.respond(parts, None, messages))
        }
    }
}

/// Responds with the answer of a call, and says how to get scopes that its caller lacks, or when a
/// limit that it reached allows it.
fn called(endpoint: &Endpoint, parts: &Parts, answer: Answer) -> Response {
    let scopes = &answer.scopes;
    let challenge = (!scopes.is_empty())
        .then(|| endpoint.identify.step_up(parts, &scopes.join(" ")))
        .flatten();
    let retry_after = answer.retry_after;
    let mut response = reply(answer.status, answer);
    set_retry_after(&mut response, retry_after);
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Chooses the era: by the body, or by a header that no legacy client would send.
fn era(parts: &Parts, request: &Request) -> Result<Era, Fault> {
    if request.era() == Era::Modern {
        return Ok(Era::Modern);
    }
    if request.method == method::INITIALIZE {
        return Ok(Era::Legacy);
    }
    let version = mirrored::stated_version(&parts.headers)?;
    Ok(version.map_or(Era::Legacy, Era::of))
}

/// Waits for the answer of a call, which may be cancelled in its session.
fn run(
    mut call: RunningCall,
    session: Option<Arc<Session>>,
) -> impl Future<Output = Answer> + Send + 'static {
    if let Some(session) = &session {
        session.has_called.store(true, Ordering::Relaxed);
        call.entered = Some(session.calls.enter(&call.id));
    }
    async move {
        let ended = call.run().await;
        // in use until now
        drop(session);
        ended.unwrap_or_else(|cancelled| cancelled)
    }
}
