//! Streams of server-sent events: one message an event, a comment when no message is due.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use callward_core::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::accept;
use super::session::Session;
use crate::server::answer::Answer;
use crate::server::subscription::{self, Subscription};

/// How many reports may wait for a client that reads slowly. Further ones are dropped.
pub(super) const REPORTS: usize = 64;

/// Turns messages into a response that lasts as long as they do, with a comment after a pause
/// without messages.
pub(super) fn respond<S>(messages: S, keep_alive: Duration) -> Response
where
    S: Stream<Item = Answer> + Send + 'static,
{
    // comments may not come without a pause
    let pause = keep_alive.max(Duration::from_millis(1));
    let events = stream::unfold(Box::pin(messages), move |mut messages| async move {
        let bytes = match timeout(pause, messages.next()).await {
            Ok(message) => event(message?),
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok::<_, Infallible>(bytes), messages))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(accept::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Tells a proxy to pass each event on as it comes.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

fn event(message: Answer) -> Bytes {
    let pieces = message.into_lines();
    let length = pieces.iter().map(Bytes::len).sum::<usize>();
    let mut out = Vec::with_capacity(length + 8);
    out.extend_from_slice(b"data: ");
    for piece in &pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// The messages of one call: its progress, then its answer.
pub(super) fn call_messages(
    answer: impl Future<Output = Answer> + Send + 'static,
    reports: mpsc::Receiver<Answer>,
) -> impl Stream<Item = Answer> + Send + 'static {
    let state = (Some(Box::pin(answer)), None, reports);
    stream::unfold(state, async |(mut call, mut answer, mut reports)| {
        while let Some(running) = &mut call {
            tokio::select! {
                // the call first: all that it reports while it runs can then be read
                biased;
                ended = running => {
                    answer = Some(ended);
                    call = None;
                    reports.close();
                }
                // a call without progress may have no sender left long before it ends
                Some(report) = reports.recv() => return Some((report, (call, answer, reports))),
            }
        }
        let message = match reports.recv().await {
            Some(report) => report,
            None => answer.take()?,
        };
        Some((message, (call, answer, reports)))
    })
}

/// The notifications of a legacy session, until the session or the stream is ended.
pub(super) fn session_messages(
    session: Arc<Session>,
    changes: BoxStream<'static, ()>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Answer> + Send + 'static {
    let replaced = session.open_stream();
    let ended = async move {
        tokio::select! {
            () = replaced.cancelled() => {}
            () = shutdown.cancelled() => {}
        }
    };
    changes
        .map(move |()| {
            // the session is held by the stream, so that it does not count as idle
            let _held = &session;
            subscription::list_changed()
        })
        .take_until(ended)
}

/// The messages of one subscription: the acknowledgement, each change, and the answer at the end.
pub(super) fn subscription_messages(
    subscription: Subscription,
    changes: BoxStream<'static, ()>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Answer> + Send + 'static {
    let subscription = Arc::new(subscription);
    let acknowledged = subscription.acknowledged();
    let subscribed = Arc::clone(&subscription);
    let changes = changes
        .filter_map(move |()| {
            let wanted = subscribed.wants_tools();
            std::future::ready(wanted.then(|| subscribed.list_changed()))
        })
        .take_until(async move { shutdown.cancelled().await });
    stream::iter([acknowledged])
        .chain(changes)
        .chain(stream::once(async move { subscription.ended() }))
}
