//! Takes one message: POST.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use callward_core::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use tokio::sync::{Semaphore, mpsc};

use super::accept::{self, Accepts};
use super::endpoint::{Endpoint, not_acceptable, reply, status};
use super::session::Session;
use super::{mirrored, stream};
use crate::server::Backend;
use crate::server::answer::Answer;
use crate::server::arrival::Arrival;
use crate::server::error::Fault;
use crate::server::inflight::Entered;
use crate::server::request::{Request, cancelled_id, method};
use crate::server::running::RunningCall;
use crate::server::service::{From, Step};
use crate::wire::{Era, Message, RequestId, header};

/// A refusal, with the id of the request where it is known.
type Refusal = (Option<RequestId>, Fault);

/// Answers a message: POST.
pub(super) async fn take<B: Backend>(
    endpoint: &Endpoint<B>,
    request: axum::extract::Request,
) -> Result<Response, Refusal> {
    let nameless = |fault| (None, fault);
    let (parts, body) = request.into_parts();
    let accepts = Accepts::of(&parts.headers);
    if !accepts.json {
        return Err(nameless(not_acceptable()));
    }
    if !accept::is_json(&parts.headers) {
        return Err(nameless(Fault::transport(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type must be application/json",
        )));
    }
    // held until the request is answered, as the message borrows its bytes
    let (body, _held) = endpoint.bodies.read(body).await.map_err(nameless)?;
    let is_large = body.len() > LARGE;
    let parse = move || Message::parse(&body);
    let message = match is_large {
        true => beside(parse).await.map_err(nameless)?,
        false => parse(),
    };
    match message {
        Ok(Message::Request { id, method, params }) => {
            let read = {
                let id = id.clone();
                move || Request::new(id, method, params.as_ref())
            };
            let request = match is_large {
                true => beside(read).await.map_err(nameless)?,
                false => read(),
            };
            let answered = async {
                let mut request = request?;
                mirrored::take_key(&parts.headers, &mut request)?;
                answer(endpoint, &parts, accepts, &request).await
            };
            answered.await.map_err(|fault| (Some(id), fault))
        }
        Ok(Message::Notification { method, params }) => {
            note(endpoint, &parts, &method, params.as_ref()).map_err(nameless)
        }
        // the server sends no requests, so this answers none
        Ok(Message::Response { .. }) => match mirrored::stated_version(&parts.headers) {
            Ok(_) => Ok(status(StatusCode::ACCEPTED)),
            Err(fault) => Err(nameless(fault)),
        },
        Err(invalid) => {
            let fault = Fault::new(StatusCode::BAD_REQUEST, invalid.to_rpc_error());
            Err((invalid.id().cloned(), fault))
        }
    }
}

/// A message of more bytes is parsed on another thread: requests that are small do not wait for it.
const LARGE: usize = 128 * 1024;

/// Large messages are parsed one at a time.
static PARSING: Semaphore = Semaphore::const_new(1);

/// Parses on another thread. Boxed: the future of a small message need not have space for it.
fn beside<T: Send + 'static>(
    parse: impl FnOnce() -> T + Send + 'static,
) -> BoxFuture<'static, Result<T, Fault>> {
    Box::pin(async {
        // the semaphore is never closed
        let _one = PARSING.acquire().await;
        tokio::task::spawn_blocking(parse).await.map_err(|_| {
            let text = "the message was not parsed: the server is stopping";
            Fault::transport(StatusCode::SERVICE_UNAVAILABLE, text)
        })
    })
}

fn note<B: Backend>(
    endpoint: &Endpoint<B>,
    parts: &Parts,
    method: &str,
    params: Option<&Bytes>,
) -> Result<Response, Fault> {
    mirrored::stated_version(&parts.headers)?;
    let session = endpoint.session(&parts.headers, &parts.extensions)?;
    if method == method::CANCELLED
        && let Some((session, id)) = session.zip(cancelled_id(params))
    {
        session.calls.cancel(&id);
    }
    Ok(status(StatusCode::ACCEPTED))
}

async fn answer<B: Backend>(
    endpoint: &Endpoint<B>,
    parts: &Parts,
    accepts: Accepts,
    request: &Request,
) -> Result<Response, Fault> {
    match era(parts, request)? {
        Era::Modern => modern(endpoint, parts, accepts, request).await,
        Era::Legacy => legacy(endpoint, parts, accepts, request).await,
    }
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

async fn modern<B: Backend>(
    endpoint: &Endpoint<B>,
    parts: &Parts,
    accepts: Accepts,
    request: &Request,
) -> Result<Response, Fault> {
    mirrored::check_version(&parts.headers, request)?;
    request.check_modern()?;
    // a call too: which headers it must have is known once its tool is listed
    if let Some(started) = endpoint.dispatcher.starting(request) {
        started.await;
    }
    mirrored::check_body(&parts.headers, request, || endpoint.dispatcher.listing())?;
    let (reports, seen) = reports(accepts, request);
    let from = From {
        era: Era::Modern,
        caller: endpoint.caller(&parts.extensions, None),
        reports,
        arrival: Arrival::by_http(parts, None, None),
    };
    match endpoint.dispatcher.serve(request, from)? {
        Step::Done(answer) => Ok(reply(StatusCode::OK, answer)),
        Step::Call(call) => Ok(run(endpoint, call, seen, None).await),
        Step::Listen(_) if !accepts.events => Err(not_acceptable()),
        Step::Listen(subscription) => {
            let changes = endpoint.dispatcher.changes();
            let shutdown = endpoint.options.shutdown.clone();
            let messages = stream::subscription_messages(subscription, changes, shutdown);
            Ok(stream::respond(messages, endpoint.options.keep_alive))
        }
    }
}

async fn legacy<B: Backend>(
    endpoint: &Endpoint<B>,
    parts: &Parts,
    accepts: Accepts,
    request: &Request,
) -> Result<Response, Fault> {
    let session = match request.method.as_str() {
        method::INITIALIZE => None,
        _ => endpoint.session(&parts.headers, &parts.extensions)?,
    };
    if request.method != method::CALL_TOOL
        && let Some(started) = endpoint.dispatcher.starting(request)
    {
        started.await;
    }
    let (reports, seen) = reports(accepts, request);
    let open = session.as_deref();
    let id = open.and_then(|session| session.caller.session.as_ref());
    let client = open.and_then(|session| session.client.clone());
    let from = From {
        era: Era::Legacy,
        caller: endpoint.caller(&parts.extensions, open),
        reports,
        arrival: Arrival::by_http(parts, id, client),
    };
    let step = endpoint.dispatcher.serve(request, from);
    match step.map_err(legacy_status)? {
        Step::Done(answer) if request.method == method::INITIALIZE => {
            // opened last: a refused handshake leaves no session behind
            let session = endpoint.open_session(&parts.extensions, request.client_of_session())?;
            let mut response = reply(StatusCode::OK, answer);
            if let Ok(id) = HeaderValue::from_str(&session.id.to_string()) {
                response.headers_mut().insert(header::SESSION_ID, id);
            }
            Ok(response)
        }
        Step::Done(answer) => Ok(reply(StatusCode::OK, answer)),
        Step::Call(call) => {
            let entered = session.map(|session| {
                session.called();
                let entered = session.calls.enter(&request.id);
                (session, entered)
            });
            Ok(run(endpoint, call, seen, entered).await)
        }
        // not reached: the legacy era does not have this method
        Step::Listen(_) => Err(legacy_status(Fault::method_not_found(&request.method))),
    }
}

/// In the legacy era an unknown method is a matter of JSON-RPC alone: 404 means a lost session.
fn legacy_status(mut fault: Fault) -> Fault {
    if fault.status == StatusCode::NOT_FOUND {
        fault.status = StatusCode::OK;
    }
    fault
}

/// Creates the channel of progress reports, if they are requested and the client accepts a stream.
fn reports(
    accepts: Accepts,
    request: &Request,
) -> (Option<mpsc::Sender<Answer>>, Option<mpsc::Receiver<Answer>>) {
    if !accepts.events || request.progress_token().is_none() {
        return (None, None);
    }
    let (reports, seen) = mpsc::channel(stream::REPORTS);
    (Some(reports), Some(seen))
}

/// Runs a call: as one JSON answer, or as a stream where progress was asked for. The call lives in
/// the response, which is dropped when the client goes away.
async fn run<B: Backend>(
    endpoint: &Endpoint<B>,
    call: RunningCall,
    reports: Option<mpsc::Receiver<Answer>>,
    entered: Option<(Arc<Session>, Entered)>,
) -> Response {
    let answer = answer_of(call, entered);
    match reports {
        Some(reports) => {
            let messages = stream::call_messages(answer, reports);
            stream::respond(messages, endpoint.options.keep_alive)
        }
        None => {
            let answer = answer.await;
            reply(answer.status(), answer)
        }
    }
}

/// Waits for the answer of a call, which may be cancelled in its session.
async fn answer_of(mut call: RunningCall, entered: Option<(Arc<Session>, Entered)>) -> Answer {
    let Some((_session, entered)) = entered else {
        return call.await;
    };
    tokio::select! {
        biased;
        () = entered.cancelled() => None,
        answer = &mut call => Some(answer),
    }
    .unwrap_or_else(|| call.cancel())
}
