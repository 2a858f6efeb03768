//! Servers of revision 2024-11-05, which answer on one event stream.
//!
//! A GET opens the stream. Its first event, `endpoint`, names the address that takes messages with
//! POST; all that the server says comes on the stream. The stream is the session: a server that
//! loses one loses the other, and so does a client.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::{ErrorKind, ToolError};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::events::EventReader;
use super::exchange::{self, aside, exchange};
use super::link::{HttpLink, Known};
use super::session::Session;
use crate::client::answer::RequestError;
use crate::client::handshake::{self, PROBE_TIMEOUT};
use crate::client::info::ServerInfo;
use crate::wire::{LATEST_LEGACY, Message, header};

/// How long a POST may still take whose answer has come.
const POST_WAIT: Duration = Duration::from_secs(1);

type Answer = Result<Bytes, RequestError>;

/// A server's stream: which requests wait for their answers on it.
pub(super) struct Stream {
    /// Where messages go.
    target: Uri,
    /// `None` once the stream has ended.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
    /// What reads the stream, until it is followed.
    unread: Mutex<Option<Box<EventReader>>>,
    closed: CancellationToken,
    _end: DropGuard,
}

/// Without the address, which names the session.
impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Stream {
    fn new(target: Uri) -> Self {
        let closed = CancellationToken::new();
        Self {
            target,
            waiting: Mutex::new(Some(HashMap::new())),
            unread: Mutex::default(),
            _end: closed.clone().drop_guard(),
            closed,
        }
    }

    pub(super) fn target(&self) -> &Uri {
        &self.target
    }

    /// Fires when the session is given up.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Sends a request and waits for its answer on the stream.
    pub(super) async fn exchange(
        &self,
        link: &Arc<HttpLink>,
        session: &Arc<Session>,
        headers: HeaderMap,
        message: Vec<u8>,
        id: u64,
    ) -> Answer {
        let (sender, mut answer) = oneshot::channel();
        let is_open = self.waiting.lock().as_mut().map(|waiting| {
            waiting.insert(id, sender);
        });
        if is_open.is_none() {
            return Err(RequestError::not_sent("the event stream has ended"));
        }
        let (poster, of) = (link.clone(), session.clone());
        let mut posting = Box::pin(async move {
            let response = poster.send(&of, Method::POST, headers, message).await?;
            match response.status().is_success() {
                true => Ok(()),
                false => Err(exchange::refusal(&poster, &of, response, id).await),
            }
        });
        // the sender is only dropped unused with the whole stream
        let given_up = |_| Err(RequestError::lost("the event stream was given up"));
        tokio::select! {
            biased;
            posted = &mut posting => posted?,
            answer = &mut answer => {
                // dropped, it would close its connection
                tokio::spawn(timeout(POST_WAIT, posting));
                return answer.unwrap_or_else(given_up);
            }
        }
        answer.await.unwrap_or_else(given_up)
    }

    /// Removes a request that no caller waits for any more.
    pub(super) fn leave(&self, id: u64) {
        if let Some(waiting) = self.waiting.lock().as_mut() {
            waiting.remove(&id);
        }
    }

    fn answer(&self, link: &HttpLink, id: Option<u64>, answer: Answer) {
        let waiting = |id| self.waiting.lock().as_mut()?.remove(&id);
        match id.and_then(waiting) {
            // the receiver may be dropped at this moment: then the answer is not needed
            Some(waiter) => drop(waiter.send(answer)),
            None => tracing::debug!(server = %link.shared.id, "an answer without a request"),
        }
    }

    /// Handles one message of the server.
    async fn take(&self, link: &Arc<HttpLink>, session: &Arc<Session>, event: Bytes) {
        let long = &link.shared.long_messages;
        match long.read(event.len(), move || Message::parse(&event)).await {
            Ok(Message::Response {
                id: Some(id),
                outcome,
            }) => self.answer(link, id.as_u64(), outcome.map_err(RequestError::Refused)),
            Ok(other) => aside(link, session, None, other),
            Err(error) => match error.id() {
                Some(id) => self.answer(link, id.as_u64(), Err(RequestError::unreadable(&error))),
                None => {
                    tracing::debug!(server = %link.shared.id, %error, "an event that is not a message");
                }
            },
        }
    }

    /// Fails all that wait, as the stream has ended. An answer that is too long ends it as well: if
    /// one request waits, it is that one's.
    fn fail_all(&self, error: ToolError) {
        let waiting = self.waiting.lock().take().unwrap_or_default();
        let is_known = error.kind == ErrorKind::TooLarge && waiting.len() == 1;
        let text = format!("the event stream ended before an answer: {}", error.message);
        let mut known = Some(error).filter(|_| is_known);
        for waiter in waiting.into_values() {
            let error = known.take().map(RequestError::Failed);
            let _ = waiter.send(Err(
                error.unwrap_or_else(|| RequestError::lost(text.clone()))
            ));
        }
    }
}

/// Initializes a server that refused a POST of `initialize` as servers of 2024-11-05 do.
///
/// # Errors
///
/// The refusal, if the server has no such stream either.
pub(super) async fn open(
    link: &Arc<HttpLink>,
    refusal: RequestError,
) -> Result<(ServerInfo, Arc<Stream>), RequestError> {
    let may_be_old = match &refusal {
        // a server that answers in JSON-RPC has understood the request, unless it takes no POST
        RequestError::Refused(error) => error.status == Some(405),
        RequestError::Failed(error) => matches!(error.http_status, Some(400 | 404 | 405)),
        RequestError::SessionGone => false,
    };
    if !may_be_old {
        return Err(refusal);
    }
    let mut blank = link.session_of(ServerInfo::new(LATEST_LEGACY), None);
    let Ok(Some((mut events, endpoint))) = timeout(PROBE_TIMEOUT, connect(link, &blank)).await
    else {
        return Err(refusal);
    };
    let client = link.client.as_ref();
    let client = client.map_err(|error| RequestError::not_sent(error.clone()))?;
    let target = client.endpoint(&endpoint).map_err(|error| {
        RequestError::protocol(format!(
            "the endpoint that the server's event stream names cannot be used: {error}"
        ))
    })?;
    let stream = Arc::new(Stream::new(target));
    blank.stream = Some(stream.clone());
    let blank = Arc::new(blank);
    let ask = handshake::initialize(link.shared.declared().await);
    let reading = async {
        loop {
            match next(&mut events).await {
                Ok(event) => stream.take(link, &blank, event).await,
                Err(error) => return error,
            }
        }
    };
    let (result, _) = tokio::select! {
        biased;
        answer = exchange(link, &blank, &ask, None) => answer?,
        error = reading => return Err(error),
    };
    let mut info = ServerInfo::initialized(&result).map_err(RequestError::protocol)?;
    info.opens_sessions = true;
    *stream.unread.lock() = Some(Box::new(events));
    Ok((info, stream))
}

/// Opens the stream and reads its first event, which names the endpoint; nothing if the server has
/// no such stream.
async fn connect(link: &HttpLink, blank: &Session) -> Option<(EventReader, String)> {
    let mut headers = blank.bare_headers();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    // no revision is agreed on yet
    headers.remove(&header::PROTOCOL_VERSION);
    let response = link.send(blank, Method::GET, headers, Vec::new()).await;
    let response = response.ok()?;
    if !response.status().is_success() || !header::is_of(response.headers(), "text/event-stream") {
        return None;
    }
    let (limit, long) = (link.shared.options.max_message, &link.shared.long_messages);
    let mut events = EventReader::new(response.into_body(), limit, long.clone());
    let first = events.next().await.ok()??;
    let endpoint = String::from_utf8(first.into()).ok()?;
    events.is_endpoint.then_some((events, endpoint))
}

async fn next(events: &mut EventReader) -> Result<Bytes, RequestError> {
    let event = events.next().await?;
    event.ok_or_else(|| RequestError::lost("the server closed it"))
}

/// Reads the stream of a new session, if it has one, in a task that ends with the session. A stream
/// that ends first takes the session with it.
pub(super) fn follow(link: &Arc<HttpLink>, session: &Arc<Session>) {
    let Some(stream) = &session.stream else {
        return;
    };
    let Some(mut events) = stream.unread.lock().take() else {
        return;
    };
    let closed = stream.closed.clone();
    let both = (Arc::downgrade(link), Arc::downgrade(session));
    tokio::spawn(async move {
        while let Some(event) = closed.run_until_cancelled(next(&mut events)).await {
            let (Some(link), Some(session)) = (both.0.upgrade(), both.1.upgrade()) else {
                return;
            };
            let Some(stream) = &session.stream else {
                return;
            };
            match event {
                Ok(event) => stream.take(&link, &session, event).await,
                Err(error) => {
                    let error = error.into_tool_error();
                    let reason = format!("the event stream ended: {}", error.message);
                    let was_current = link.lose(&session, Known::Nothing);
                    stream.fail_all(error);
                    if was_current {
                        link.shared.down(&reason);
                    }
                    return;
                }
            }
        }
    });
}
