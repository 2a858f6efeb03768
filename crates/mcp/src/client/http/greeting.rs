//! The greeting of a server: its era, and sessions that begin with `initialize`.
//!
//! A request of 2026-07-28 belongs to no session. A server that also speaks earlier revisions keeps
//! the state of its clients in the sessions of those, whatever revisions its discovery lists. So a
//! modern server is greeted with `initialize` once per connection, and a session that this opens is
//! ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::PeerSide;
use http::{HeaderValue, Method};
use tokio::time::{Instant, timeout};

use super::exchange::{self, exchange};
use super::link::HttpLink;
use super::session::Session;
use super::sse;
use crate::client::answer::RequestError;
use crate::client::handshake::{self, PROBE_TIMEOUT};
use crate::client::info::ServerInfo;
use crate::client::options::EraChoice;
use crate::observed::SessionTimer;
use crate::wire::{Era, LATEST, LATEST_LEGACY, write};

/// Greets the server. The era belongs to it, so one that lost a session is not asked again; if it
/// has changed, this fails and the next greeting asks.
pub(super) async fn greet(link: &Arc<HttpLink>, was_legacy: bool) -> Result<Session, RequestError> {
    let options = &link.shared.options;
    let limit = options.connect_timeout;
    let began = Instant::now();
    let greeted = timeout(limit, detect(link, was_legacy)).await;
    let mut session = greeted.unwrap_or_else(|_| {
        let text = format!("the server did not answer the greeting within {limit:?}");
        Err(RequestError::not_sent(text))
    })?;
    if options.era == EraChoice::Auto && session.info.era == Era::Modern {
        let left = limit.saturating_sub(began.elapsed());
        let opens = opens_sessions(link, session.info.names_legacy, left).await;
        Arc::make_mut(&mut session.info).opens_sessions |= opens;
    }
    Ok(session)
}

/// Detects the era and greets the server in it.
async fn detect(link: &Arc<HttpLink>, was_legacy: bool) -> Result<Session, RequestError> {
    let era = link.shared.options.era;
    if era == EraChoice::Legacy || was_legacy {
        return open(link).await;
    }
    let probe = Arc::new(link.session_of(ServerInfo::new(LATEST), None));
    let ask = handshake::discover();
    let answer = timeout(PROBE_TIMEOUT, exchange(link, &probe, &ask, None)).await;
    // silence means legacy, as a result does that cannot be read as a discovery
    let answer = answer.map_or(Ok(Bytes::new()), |answer| answer.map(|(result, _)| result));
    match handshake::judge(answer, era)? {
        Some(info) => Ok(link.session_of(info, None)),
        None => open(link).await,
    }
}

/// Initializes a legacy server.
async fn open(link: &Arc<HttpLink>) -> Result<Session, RequestError> {
    let (info, id, stream) = match initialize(link).await {
        Ok((info, id)) => (info, id, None),
        Err(refusal) => {
            // boxed, as it is rare
            let (info, stream) = Box::pin(sse::open(link, refusal)).await?;
            (info, None, Some(stream))
        }
    };
    let mut session = link.session_of(info, id);
    session.stream = stream;
    let observer = link.shared.options.observer.as_ref();
    let observer = observer.filter(|_| session.can_be_forgotten());
    session.timer = SessionTimer::begin(observer, PeerSide::Client, "tcp");
    let ready = write::notification("notifications/initialized", None);
    exchange::tell(link, &session, ready).await?;
    Ok(session)
}

/// Asks for a session. Returns what the server says of itself, and the session's id if it has one.
async fn initialize(
    link: &Arc<HttpLink>,
) -> Result<(ServerInfo, Option<HeaderValue>), RequestError> {
    // nothing of a session is known yet, and no modern header may be sent
    let blank = Arc::new(link.session_of(ServerInfo::new(LATEST_LEGACY), None));
    let ask = handshake::initialize(link.shared.declared().await);
    let (result, session_id) = exchange(link, &blank, &ask, None).await?;
    let mut info = ServerInfo::initialized(&result).map_err(RequestError::protocol)?;
    info.opens_sessions = session_id.is_some();
    Ok((info, session_id))
}

/// Asks the server to end a session, if it is one: a courtesy, so a failure has no consequence.
pub(super) async fn delete(link: &HttpLink, session: &Session) {
    if session.stream.is_none() && session.can_be_forgotten() {
        let request = link.send(session, Method::DELETE, session.bare_headers(), Vec::new());
        let _ = timeout(link.shared.options.shutdown_grace, request).await;
    }
}

/// Finds out whether a modern server opens sessions too. Without a clear answer in the time that is
/// left, the revisions in its discovery decide: calls of a client that gets no session then fail,
/// while a client that shares the requests of others would lose its state silently.
async fn opens_sessions(link: &Arc<HttpLink>, names_legacy: bool, left: Duration) -> bool {
    let left = left.min(PROBE_TIMEOUT);
    let late = |_| Err(RequestError::lost(format!("no answer within {left:?}")));
    let answer = timeout(left, initialize(link)).await;
    let error = match answer.unwrap_or_else(late) {
        Ok((info, id)) => {
            let opens = id.is_some();
            let session = link.session_of(info, id);
            let link = link.clone();
            tokio::spawn(async move { delete(&link, &session).await });
            return opens;
        }
        Err(error) => error.into_tool_error(),
    };
    let is_refused = error.code.is_some_and(handshake::refuses_initialize);
    if !is_refused {
        let server = &link.shared.id;
        tracing::warn!(%server, %error, names_legacy, "unknown whether a modern server opens sessions");
    }
    names_legacy && !is_refused
}
