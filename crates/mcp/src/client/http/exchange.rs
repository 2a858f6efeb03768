//! One request and its answer.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::redact::Known;
use callward_core::{ClientMethod, Delivery, ErrorKind, ProgressSink, ToolError};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use super::answer::AnswerBody;
use super::body::{self, innermost};
use super::connect::SendError;
use super::events::EventReader;
use super::link::HttpLink;
use super::resume::resumed;
use super::session::Session;
use crate::client::answer::{self, RequestError};
use crate::client::ask::{self, Ask};
use crate::client::asked::{self, Asker, Recipients};
use crate::client::carried::Carried;
use crate::client::peer::reply;
use crate::wire::{Era, Message, ParamHeaders, RequestId, header};

/// Who gets the progress of a request, and the client behind it.
type Of<'a> = (Option<&'a Arc<dyn ProgressSink>>, Option<Asker>);

/// A result, and the session id it came with (only `initialize` looks at it).
pub(super) type Answered = (Bytes, Option<HeaderValue>);

/// Sends one request and reads its answer. Dropping the future cancels the request.
pub(super) async fn exchange(
    link: &Arc<HttpLink>,
    session: &Arc<Session>,
    ask: &Ask<'_>,
    mirrored: Option<&ParamHeaders>,
) -> Result<Answered, RequestError> {
    let id = link.next_id();
    let style = &session.style;
    let mut headers = headers(session, ask, mirrored)?;
    let carried = Carried::new(ask, &link.outbound(id, session));
    carried.add_to(&mut headers);
    let message = ask.to_message(id, style, &carried);
    let mut in_flight = InFlight {
        link,
        session,
        id,
        armed: session.info.era == Era::Legacy && ask.is_cancellable(),
    };
    let recipients = Recipients::of(ask.call);
    let client = recipients.client.clone().map(Asker::from);
    if session.info.era == Era::Legacy {
        link.reports.enter(id, recipients);
    }
    let answered = match &session.stream {
        Some(stream) => {
            let answer = stream.exchange(link, session, headers, message, id).await;
            answer.map(|result| (result, None))
        }
        None => match link.send(session, Method::POST, headers, message).await {
            Ok(response) => read(link, session, response, id, (ask.progress(), client)).await,
            Err(error) => Err(error),
        },
    };
    in_flight.armed = false;
    answered.map_err(|error| error.without(&link.secrets))
}

/// Sends a notification, or an answer to a request of the server; reads no answer.
pub(super) async fn tell(
    link: &Arc<HttpLink>,
    session: &Session,
    message: Vec<u8>,
) -> Result<(), RequestError> {
    let headers = session.headers.clone();
    let response = link.send(session, Method::POST, headers, message).await?;
    accepted(session, response).map(|_| ())
}

fn headers(
    session: &Session,
    ask: &Ask<'_>,
    mirrored: Option<&ParamHeaders>,
) -> Result<HeaderMap, RequestError> {
    let mut headers = session.headers.clone();
    if ask.method == "initialize" {
        // no revision is agreed on yet: the message itself offers one
        headers.remove(&header::PROTOCOL_VERSION);
    }
    let invalid = |what: &str| RequestError::invalid(format!("{what} cannot travel in a header"));
    if let Some(key) = ask.key(&session.style) {
        let key = HeaderValue::try_from(key).map_err(|_| invalid("the idempotency key"))?;
        headers.insert(&header::IDEMPOTENCY_KEY, key);
    }
    if session.info.era == Era::Legacy {
        return Ok(headers);
    }
    headers.insert(&header::METHOD, HeaderValue::from_static(ask.method));
    if let Some(name) = ask.name.as_deref().map(header::encode_value) {
        let name = HeaderValue::try_from(name).map_err(|_| invalid("the name"))?;
        headers.insert(&header::NAME, name);
    }
    if let (Some(mirrored), Some(call)) = (mirrored, ask.call) {
        let values = mirrored.values(call.arguments()).map_err(|error| {
            RequestError::invalid("the arguments cannot be mirrored into headers")
                .with_source(error)
        })?;
        for (name, value) in values {
            let name = HeaderName::try_from(name).map_err(|_| invalid("an argument's name"))?;
            let value = HeaderValue::try_from(value).map_err(|_| invalid("an argument"))?;
            headers.insert(name, value);
        }
    }
    Ok(headers)
}

async fn read(
    link: &Arc<HttpLink>,
    session: &Arc<Session>,
    response: Response<AnswerBody>,
    id: u64,
    of: Of<'_>,
) -> Result<Answered, RequestError> {
    let status = response.status();
    let session_id = response.headers().get(&header::SESSION_ID).cloned();
    if !status.is_success() {
        return Err(refusal(link, session, response, id).await);
    }
    let limit = link.shared.options.max_message;
    let long = &link.shared.long_messages;
    let result = if header::is_of(response.headers(), "text/event-stream") {
        let events = EventReader::new(response.into_body(), limit, long.clone());
        read_events(link, session, events, id, of).await?
    } else if header::is_of(response.headers(), "application/json") {
        let body = body::whole(response.into_body(), limit, long).await?;
        let message = body.bytes;
        match long
            .read(message.len(), move || Message::parse(&message))
            .await
        {
            Ok(Message::Response { id: of, outcome }) if is_ours(of.as_ref(), id) => {
                outcome.map_err(RequestError::Refused)?
            }
            Ok(_) => {
                // it is unknown whose answer it is: more may follow on the connections that are
                // kept
                link.close_idle();
                return Err(RequestError::misdirected());
            }
            Err(error) => {
                return Err(body
                    .broken
                    .unwrap_or_else(|| RequestError::unreadable(&error)));
            }
        }
    } else {
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.map_or(b"".as_slice(), HeaderValue::as_bytes);
        return Err(RequestError::protocol(format!(
            "the server answered HTTP {status} with content type {:?}, which is neither JSON nor an \
             event stream",
            plain_text(&link.secrets, content_type)
        )));
    };
    Ok((result, session_id))
}

/// Reads why the server did not take a request, from an answer whose status is not a success.
pub(super) async fn refusal(
    link: &HttpLink,
    session: &Session,
    response: Response<AnswerBody>,
    id: u64,
) -> RequestError {
    let (parts, words) = response.into_parts();
    let words = body::refusal(words).await.unwrap_or_default();
    let (of, rpc) = match Message::parse(&words) {
        Ok(Message::Response {
            id: of,
            outcome: Err(error),
        }) => (of, Some(error)),
        _ => (None, None),
    };
    // servers that refuse a request before they read its id may state an id of their own, which is
    // a text; each of ours is a number
    let of = of.and_then(|of| of.as_u64());
    if of.is_some_and(|of| of != id) {
        link.close_idle();
        return RequestError::misdirected();
    }
    // one that answers this very request may mean something else than the session
    let names_session = rpc.as_ref().is_none_or(|rpc| names_session(&rpc.message));
    if parts.status == StatusCode::NOT_FOUND
        && session.can_be_forgotten()
        && (of.is_none() || names_session)
    {
        return RequestError::SessionGone;
    }
    let words = plain_text(&link.secrets, &words);
    answer::status(parts.status, &parts.headers, rpc, &words)
}

async fn read_events(
    link: &Arc<HttpLink>,
    session: &Arc<Session>,
    mut events: EventReader,
    id: u64,
    (progress, client): Of<'_>,
) -> Result<Bytes, RequestError> {
    loop {
        let broken = loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => break None,
                Err(error) if error.is_lost() => break Some(error),
                Err(error) => return Err(error),
            };
            let long = &link.shared.long_messages;
            match long.read(event.len(), move || Message::parse(&event)).await {
                Ok(Message::Response { id: of, outcome }) if is_ours(of.as_ref(), id) => {
                    return outcome.map_err(RequestError::Refused);
                }
                Ok(Message::Notification { method, params })
                    if method == "notifications/progress" =>
                {
                    if let (Some(progress), Some(params)) = (progress, params) {
                        progress.report(&params); // the stream belongs to this request alone
                    }
                }
                Ok(other) => aside(link, session, Some(client.as_ref()), other),
                Err(error) if is_ours(error.id(), id) && error.id().is_some() => {
                    return Err(RequestError::unreadable(&error));
                }
                Err(error) => {
                    tracing::debug!(server = %link.shared.id, %error, "an event that is not a message");
                }
            }
        };
        // boxed, as it is rare: each call would carry its size
        events = Box::pin(resumed(link, session, events.resume, broken)).await?;
    }
}

/// Reads the status of an answer. The body of a refusal does not matter.
pub(super) fn accepted<B>(
    session: &Session,
    response: Response<B>,
) -> Result<Response<B>, RequestError> {
    match response.status() {
        status if status.is_success() => Ok(response),
        StatusCode::NOT_FOUND if session.can_be_forgotten() => Err(RequestError::SessionGone),
        status => Err(answer::status(status, response.headers(), None, "")),
    }
}

/// Returns what is shown of a text of the server, such as a refusal that is neither JSON nor HTML.
fn plain_text(secrets: &Known, words: &[u8]) -> String {
    let words = String::from_utf8_lossy(words);
    // first: a part of a secret would be left
    let words = secrets.hide(&words);
    if words.trim_start().starts_with(['<', '{', '[']) {
        return String::new();
    }
    let shown = words
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c });
    shown.take(MAX_PLAIN_TEXT).collect()
}

/// How many characters of such a text are shown.
const MAX_PLAIN_TEXT: usize = 200;

/// Recognises the error message of a server that lost a session.
pub(super) fn names_session(message: &str) -> bool {
    message.to_ascii_lowercase().contains("session")
}

/// An error without an id is about the request it answers.
fn is_ours(of: Option<&RequestId>, id: u64) -> bool {
    of.is_none_or(|of| of.as_u64() == Some(id))
}

/// Handles a message that comes beside the answer: on the stream of a request that has this client
/// or none, or on another stream.
pub(super) fn aside(
    link: &Arc<HttpLink>,
    session: &Arc<Session>,
    of: Option<Option<&Asker>>,
    message: Message,
) {
    let client = || {
        let unnamed = || link.shared.client(|| link.reports.meant());
        of.map_or_else(unnamed, |of| of.cloned().ok_or(asked::UNDECLARED))
    };
    match message {
        Message::Notification { method, params } if method == "notifications/cancelled" => {
            link.shared.requests.cancel(params.as_ref());
        }
        Message::Notification { method, params } if asked::is_passed_on(&method) => {
            if let Ok(client) = client() {
                client.notify(&method, params.as_ref());
            }
        }
        Message::Notification {
            method,
            params: Some(params),
        } if method == "notifications/progress" => link.reports.report(&params),
        Message::Notification { method, params } => {
            if !link.shared.takes(&method, params.as_ref()) {
                tracing::trace!(server = %link.shared.id, method, "a message of no concern");
            }
        }
        Message::Request { id, method, params } if session.info.era == Era::Legacy => {
            let Some(asked) = ClientMethod::by_name(&method) else {
                return link.notices.reply(session, reply(&id, &method));
            };
            let (to, of_session) = (link.clone(), session.clone());
            let reply = async move |message| {
                // the server has given up if it does not take it
                let _ = tell(&to, &of_session, message).await;
            };
            let shared = &link.shared;
            let client = shared.asks(client(), asked, params.as_ref());
            let asked = (id, asked, params);
            if let Some(refusal) = shared.requests.answer(client, asked, &shared.stop, reply) {
                link.notices.reply(session, refusal);
            }
        }
        other => {
            tracing::trace!(server = %link.shared.id, ?other, "a message of no concern");
        }
    }
}

/// Cleans up after a request: no more progress is reported, and a legacy server is notified that it
/// is cancelled. A modern one sees its stream closed.
struct InFlight<'a> {
    link: &'a Arc<HttpLink>,
    session: &'a Arc<Session>,
    id: u64,
    armed: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.link.reports.leave(self.id);
        if let Some(stream) = &self.session.stream {
            stream.leave(self.id);
        }
        if self.armed {
            let message = ask::cancelled(self.id);
            // without it the server only works without success
            let _ = self.link.notices.push(self.session, message);
        }
    }
}

/// Reads why a request could not be sent, or was not answered.
///
/// `cut_short` says that the end of the request was never given to the connection.
pub(super) fn unsent(error: &SendError, cut_short: bool) -> RequestError {
    let cause = match error {
        SendError::NoneFree(max) => {
            let text = format!("all {max} connections to the server are in use; try again later");
            return ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text).into();
        }
        SendError::Connect(cause, proxy) => {
            let cause = innermost(&**cause);
            return RequestError::not_sent(match proxy {
                Some(proxy) => format!(
                    "no connection to the server by way of {proxy}: {cause}; check that the proxy runs, \
                     and the server's address"
                ),
                None if cause.starts_with("invalid peer certificate") => format!(
                    "the server is not trusted: {cause}; check the name in its URL, and name a file \
                     with authorities to trust in SSL_CERT_FILE"
                ),
                None => format!(
                    "no connection to the server: {cause}; check its address and that it runs"
                ),
            });
        }
        SendError::Broken(cause) => innermost(&**cause),
    };
    if cut_short {
        return RequestError::cut_short(format!(
            "the connection broke before the whole request was sent: {cause}"
        ));
    }
    RequestError::lost(format!("the connection broke before an answer: {cause}"))
}
