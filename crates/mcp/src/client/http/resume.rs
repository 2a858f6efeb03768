//! Event streams that end or break off, and are resumed after their last event with an id.

use std::sync::Arc;
use std::time::Duration;

use callward_core::ErrorKind;
use http::header::ACCEPT;
use http::{HeaderValue, Method};
use tokio::time::sleep;

use super::events::EventReader;
use super::exchange::accepted;
use super::link::HttpLink;
use super::session::Session;
use crate::client::answer::RequestError;
use crate::wire::{Era, header};

/// How long to wait before a stream is resumed, if its server does not say.
const WAIT: Duration = Duration::from_secs(1);
/// The shortest wait and the longest, whatever the server states.
const LEAST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How many attempts to resume may fail or break off before there is another event with an id.
const MAX_FAILURES: u32 = 3;

/// How a stream can be resumed.
#[derive(Debug, Clone, Default)]
pub(super) struct Resume {
    /// The id of the last event that has one.
    after: Option<String>,
    /// How long the server wants a client to wait first.
    pub(super) wait: Option<Duration>,
    /// How often the stream broke off, or was not resumed, since that event.
    failures: u32,
}

impl Resume {
    /// Takes note of an event with an id.
    pub(super) fn pass(&mut self, id: String) {
        (self.after, self.failures) = (Some(id), 0);
    }

    /// Takes note that the stream cannot be resumed.
    pub(super) fn forget(&mut self) {
        self.after = None;
    }

    /// Returns the id of the last event, unless the server has taken it back with an empty one.
    pub(super) fn last_event(&self) -> Option<HeaderValue> {
        let id = self.after.as_deref().filter(|id| !id.is_empty())?;
        HeaderValue::try_from(id).ok()
    }

    /// Waits as the server has stated, or otherwise for this long.
    pub(super) async fn pause(&self, usual: Duration) {
        let stated = self.wait.map(|wait| wait.clamp(LEAST_WAIT, LONGEST_WAIT));
        sleep(stated.unwrap_or(usual)).await;
    }
}

/// Asks for the rest of a stream that ended, or broke off for this reason, before the answer.
/// Nothing is sent again: the server goes on with what it does. A server may end a stream as often
/// as it likes, so that the client asks now and then; the attempt's timeout bounds that.
///
/// # Errors
///
/// The reason, if the stream cannot be resumed.
pub(super) async fn resumed(
    link: &Arc<HttpLink>,
    session: &Session,
    mut resume: Resume,
    broken: Option<RequestError>,
) -> Result<EventReader, RequestError> {
    resume.failures += u32::from(broken.is_some());
    let lost = broken
        .unwrap_or_else(|| RequestError::lost("the server ended the stream without an answer"));
    let after = resume.last_event();
    let Some(after) = after.filter(|_| session.info.era == Era::Legacy) else {
        return Err(lost);
    };
    while resume.failures <= MAX_FAILURES {
        resume.pause(WAIT).await;
        let limit = link.shared.options.max_message;
        match events(link, session, Some(after.clone()), limit).await {
            Ok(mut rest) => {
                rest.resume = resume;
                return Ok(rest);
            }
            Err(error) => {
                let kind = error.into_tool_error().kind;
                if !kind.is_transient() || kind == ErrorKind::SessionLost {
                    break;
                }
                resume.failures += 1;
            }
        }
    }
    Err(lost)
}

/// Opens a stream of the server's own, or, after the event with an id, the rest of another.
///
/// # Errors
///
/// A server that offers none.
pub(super) async fn events(
    link: &HttpLink,
    session: &Session,
    after: Option<HeaderValue>,
    limit: usize,
) -> Result<EventReader, RequestError> {
    let mut headers = session.bare_headers();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(last) = after {
        headers.insert(&header::LAST_EVENT_ID, last);
    }
    let response = link.send(session, Method::GET, headers, Vec::new()).await?;
    let response = accepted(session, response)?;
    if !header::is_of(response.headers(), "text/event-stream") {
        let text = "the server answered with something else than an event stream";
        return Err(RequestError::protocol(text));
    }
    let long = link.shared.long_messages.clone();
    Ok(EventReader::new(response.into_body(), limit, long))
}
