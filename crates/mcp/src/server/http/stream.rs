//! Streams of server-sent events: one message an event, a comment when no message is due.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use callward_core::{BoxStream, List};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc;

use crate::server::answer::Answer;
use crate::server::subscription::Subscription;

/// How many reports may wait for a client that reads slowly. Further ones are dropped.
pub(super) const REPORTS: usize = 64;

/// An event: a message on one line, and the id after which a stream is resumed.
#[derive(Debug)]
pub(super) struct Sent {
    id: Option<String>,
    line: Bytes,
}

impl Sent {
    pub(super) const fn with_id(id: String, line: Bytes) -> Self {
        Self { id: Some(id), line }
    }

    #[cfg(test)]
    pub(super) fn into_parts(self) -> (Option<String>, String) {
        (self.id, String::from_utf8_lossy(&self.line).into_owned())
    }
}

impl From<Answer> for Sent {
    fn from(message: Answer) -> Self {
        Self {
            id: None,
            line: message.into_lines().concat().into(),
        }
    }
}

/// Turns messages into a response that lasts as long as they do, with a comment after a pause
/// without messages.
pub(super) fn respond<S>(messages: S, keep_alive: Duration) -> Response
where
    S: Stream<Item: Into<Sent>> + Send + 'static,
{
    // comments may not come without a pause
    let pause = keep_alive.max(Duration::from_millis(1));
    let events = messages.map(|message| {
        let Sent { id, line } = message.into();
        let event = id.map_or_else(Event::default, |id| Event::default().id(id));
        Ok::<_, Infallible>(event.data(String::from_utf8_lossy(&line)))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(pause));
    // proxies pass each event on as it comes
    ([("x-accel-buffering", "no")], events).into_response()
}

/// The messages of one call: its progress, which `reports` has, then its answer.
pub(super) fn call_messages(
    answer: impl Future<Output = Answer> + Send + 'static,
    (out, mut reports): (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
) -> impl Stream<Item = Answer> + Send + 'static {
    let answered = async move {
        // the client may be gone
        let _ = out.send(answer.await).await;
        None::<Answer>
    };
    let answered = stream::once(answered).filter_map(ready);
    let messages = stream::poll_fn(move |cx| reports.poll_recv(cx));
    stream::select(answered, messages)
}

/// The messages of one subscription: the acknowledgement, each change and update, what the client
/// is asked, and the answer at the end.
pub(super) fn notifications(
    subscription: Subscription,
    changes: BoxStream<'static, List>,
    asked: Option<mpsc::Receiver<Answer>>,
    end: impl Future<Output = ()> + Send + 'static,
) -> impl Stream<Item = Answer> + Send + 'static {
    let (first, last) = (subscription.acknowledged(), subscription.ended());
    let updates = subscription.updates().map(Some);
    let changes = changes.filter_map(move |list| ready(subscription.list_changed(list)));
    let asked = asked.map(|mut asked| stream::poll_fn(move |cx| asked.poll_recv(cx)));
    // the stream ends with the changes
    let changes = changes.map(Some).chain(stream::iter([None]));
    let changes = stream::select(changes, updates);
    let asked = stream::iter(asked).flatten().map(Some);
    let messages = stream::select(changes, asked).take_while(|message| ready(message.is_some()));
    let messages = messages.filter_map(ready).take_until(end);
    stream::iter(first)
        .chain(messages)
        .chain(stream::iter(last))
}
