//! Sessions that begin with `initialize`, and whether a modern server opens them too.
//!
//! A request of 2026-07-28 belongs to no session. A server that also speaks earlier revisions keeps
//! the state of its clients in the sessions of those, whatever revisions its discovery lists. So a
//! modern server is greeted with `initialize` once per connection, and a session that this opens is
//! ended.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use super::exchange::{self, Answered, exchange};
use super::link::Endpoint;
use super::session::Session;
use crate::client::answer::RequestError;
use crate::client::handshake;
use crate::client::info::ServerInfo;
use crate::wire::{LATEST_LEGACY, write};

/// Initializes a legacy server.
pub(super) async fn open(endpoint: &Arc<Endpoint>) -> Result<Session, RequestError> {
    let (info, id) = initialize(endpoint).await?;
    let options = &endpoint.shared.options;
    let session = Session::new(info, id, endpoint.headers(), options);
    let session = session.observed_by(options.observer.as_ref());
    let ready = write::notification("notifications/initialized", None);
    exchange::tell(endpoint, &session, ready).await?;
    Ok(session)
}

/// Asks for a session. Returns what the server says of itself, and the session's id if it has one.
async fn initialize(
    endpoint: &Arc<Endpoint>,
) -> Result<(ServerInfo, Option<HeaderValue>), RequestError> {
    let options = &endpoint.shared.options;
    // nothing of a session is known yet, and no modern header may be sent
    let blank = ServerInfo::new(LATEST_LEGACY);
    let blank = Session::new(blank, None, endpoint.headers(), options);
    let ask = handshake::initialize(&options.client_info);
    let Answered { result, session_id } = exchange(endpoint, &Arc::new(blank), &ask, None).await?;
    let mut info = ServerInfo::initialized(&result).map_err(RequestError::protocol)?;
    info.opens_sessions = session_id.is_some();
    Ok((info, session_id))
}

/// Asks the server to end a session: a courtesy, so a failure has no consequence.
pub(super) async fn delete(endpoint: &Endpoint, session: &Session) {
    let grace = endpoint.shared.options.shutdown_grace;
    let request = endpoint.send(http::Method::DELETE, session.bare_headers(), Vec::new());
    let _ = tokio::time::timeout(grace, request).await;
}

/// Finds out whether a modern server opens sessions too. Without a clear answer within `timeout`,
/// the revisions in its discovery decide: calls of a client that gets no session then fail, while a
/// client that shares the requests of others would lose its state silently.
pub(super) async fn are_opened(
    endpoint: &Arc<Endpoint>,
    names_legacy: bool,
    timeout: Duration,
) -> bool {
    let error = match tokio::time::timeout(timeout, initialize(endpoint)).await {
        Ok(Ok((_, None))) => return false,
        Ok(Ok((info, id))) => {
            let options = &endpoint.shared.options;
            let session = Session::new(info, id, endpoint.headers(), options);
            let endpoint = endpoint.clone();
            tokio::spawn(async move { delete(&endpoint, &session).await });
            return true;
        }
        Ok(Err(error)) => error.into_tool_error(),
        Err(_) => RequestError::lost(format!("no answer within {timeout:?}")).into_tool_error(),
    };
    let is_refused = error.code().is_some_and(handshake::refuses_initialize);
    if !is_refused {
        let server = &endpoint.shared.id;
        tracing::warn!(%server, %error, names_legacy, "unknown whether a modern server opens sessions");
    }
    names_legacy && !is_refused
}
