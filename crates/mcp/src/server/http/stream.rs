//! Streams of server-sent events: one message an event, a comment when there is nothing to say.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use callward_core::{BoxFuture, BoxStream};
use futures_core::Stream;
use futures_util::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use pin_project_lite::pin_project;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval};
use tokio_util::sync::CancellationToken;

use super::accept;
use super::session::Session;
use crate::server::answer::Answer;
use crate::server::inflight::Entered;
use crate::server::running::RunningCall;
use crate::server::subscription::{self, Subscription};

/// How many reports may wait for a client that reads slowly. Further ones are dropped.
pub(super) const REPORTS: usize = 64;

/// Turns messages into a response that lasts as long as they do.
pub(super) fn respond<S>(messages: S, keep_alive: Duration) -> Response
where
    S: Stream<Item = Answer> + Send + 'static,
{
    // an interval may be neither zero nor reach beyond the end of time
    let period = keep_alive.clamp(Duration::from_millis(1), A_DAY);
    let mut response = Response::new(Body::from_stream(Events {
        messages,
        beat: tokio::time::interval_at(Instant::now() + period, period),
    }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(accept::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Tells a proxy to pass each event on as it comes.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pin_project! {
    /// Messages as events, with a comment whenever none came for a while.
    struct Events<S> {
        #[pin]
        messages: S,
        beat: Interval,
    }
}

impl<S: Stream<Item = Answer>> Stream for Events<S> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        match this.messages.poll_next(cx) {
            Poll::Ready(Some(message)) => {
                this.beat.reset();
                Poll::Ready(Some(Ok(event(message))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => this
                .beat
                .poll_tick(cx)
                .map(|_| Some(Ok(Bytes::from_static(b":\n\n")))),
        }
    }
}

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
pub(super) struct CallMessages {
    call: Option<RunningCall>,
    /// The answer, while reports that came before it are still to be read.
    answer: Option<Answer>,
    reports: mpsc::Receiver<Answer>,
    cancelled: Option<BoxFuture<'static, ()>>,
}

impl CallMessages {
    pub(super) fn new(
        call: RunningCall,
        reports: mpsc::Receiver<Answer>,
        entered: Option<(Arc<Session>, Entered)>,
    ) -> Self {
        Self {
            call: Some(call),
            answer: None,
            reports,
            cancelled: entered.map(|(session, mut entered)| -> BoxFuture<'static, ()> {
                Box::pin(async move {
                    entered.cancelled().await;
                    drop(session);
                })
            }),
        }
    }

    fn poll_call(&mut self, cx: &mut Context<'_>) {
        let Some(call) = &mut self.call else {
            return;
        };
        let cancelled = self.cancelled.as_mut();
        if cancelled.is_some_and(|cancelled| cancelled.as_mut().poll(cx).is_ready()) {
            self.answer = Some(call.cancel());
        } else if let Poll::Ready(answer) = Pin::new(call).poll(cx) {
            self.answer = Some(answer);
        } else {
            return;
        }
        self.call = None;
        self.cancelled = None;
        self.reports.close();
    }
}

impl Stream for CallMessages {
    type Item = Answer;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        // the call first: all that it reports while it runs can then be read
        self.poll_call(cx);
        match self.reports.poll_recv(cx) {
            Poll::Ready(Some(report)) => Poll::Ready(Some(report)),
            Poll::Ready(None) if self.call.is_none() => Poll::Ready(self.answer.take()),
            // a call without progress may have no sender left long before it ends
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// The notifications of a legacy session, until the session or the stream is ended.
pub(super) fn session_messages(
    session: Arc<Session>,
    changes: BoxStream<'static, ()>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Answer> + Send + 'static {
    let replaced = session.open_stream();
    changes
        // the session is held by the stream, so that it does not count as idle
        .map(move |()| tools_changed(&session))
        .take_until(either(replaced, shutdown))
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
        .filter(move |()| std::future::ready(subscribed.wants_tools()))
        .map({
            let subscribed = Arc::clone(&subscription);
            move |()| subscribed.list_changed()
        })
        .take_until(async move { shutdown.cancelled().await });
    futures_util::stream::iter([acknowledged])
        .chain(changes)
        .chain(futures_util::stream::once(
            async move { subscription.ended() },
        ))
}

fn tools_changed(_: &Session) -> Answer {
    subscription::list_changed()
}

async fn either(one: CancellationToken, other: CancellationToken) {
    tokio::select! {
        () = one.cancelled() => {}
        () = other.cancelled() => {}
    }
}
