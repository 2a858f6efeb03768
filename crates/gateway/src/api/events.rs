//! Streams of server-sent events, such as the router's: each is one `data` line with a JSON object.
//!
//! A slow listener loses the oldest events and gets their number; no call waits for
//! one.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde::Serialize;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::io::StreamReader;

use super::client::cause;
use crate::error::AppError;
use crate::runtime::Runtime;

/// How often a stream without events sends a comment, so that proxies do not cut it and a reader
/// that went away is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Readers skip comments.
const COMMENT: &str = "callward";
/// The longest line of an event.
const LONGEST: usize = 1 << 20;

/// Sends events from now on, until the gateway stops or the reader goes away.
pub(super) async fn follow(State(runtime): State<Arc<Runtime>>) -> Response {
    respond(&runtime, runtime.stack.route_events())
}

/// Sends these events until the gateway stops or the reader goes away. They are listened to before
/// the answer begins: a client that has its head misses nothing.
pub(super) fn respond<T: Serialize>(
    runtime: &Runtime,
    events: impl Stream<Item = T> + Send + 'static,
) -> Response {
    let events = events.map(|event| match serde_json::to_string(&event) {
        Ok(text) => Event::default().data(text),
        Err(error) => {
            tracing::warn!(%error, "an event cannot be written");
            Event::default().comment(COMMENT)
        }
    });
    // the head goes out with the first part
    let first = stream::once(std::future::ready(Event::default().comment(COMMENT)));
    let stop = runtime.stop.drained.clone();
    let all = first.chain(events).take_until(stop.cancelled_owned());
    Sse::new(all.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE).text(COMMENT))
        .into_response()
}

/// The client's side: the events of an answer as JSON, one after the other, until the gateway ends
/// the stream. An error means that the connection broke, or that the answer has no events.
pub(crate) type Events = BoxStream<'static, Result<String, AppError>>;

/// Reads the `data` lines of an answer; the others are comments or blank.
pub(super) fn read<E>(answer: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Events
where
    E: std::error::Error + Send + Sync + 'static,
{
    let bytes = StreamReader::new(answer.map_err(io::Error::other).boxed());
    let lines = FramedRead::new(bytes, LinesCodec::new_with_max_length(LONGEST));
    let events = lines.filter_map(async |line| match line {
        Ok(line) => Some(Ok(line.strip_prefix("data:")?.trim().to_owned())),
        Err(error) => Some(Err(AppError::Remote(match error {
            LinesCodecError::Io(error) => format!("the gateway went away: {}", cause(&error)),
            LinesCodecError::MaxLineLengthExceeded => {
                "the answer is not an event: a line has no end".to_owned()
            }
        }))),
    });
    events.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_read_whole_wherever_they_are_cut() {
        let whole = ": callward\n\ndata: {\"a\":1}\n\n: callward\n\ndata: {\"b\":\"é\"}\r\n\r\n";
        for size in 1..whole.len() {
            let parts = whole.as_bytes().chunks(size);
            let parts: Vec<io::Result<_>> = parts.map(|part| Ok(part.into())).collect();
            let found: Vec<_> = read(stream::iter(parts))
                .map(Result::unwrap)
                .collect()
                .await;
            assert_eq!(found, ["{\"a\":1}", "{\"b\":\"é\"}"], "{size}");
        }
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_an_error() {
        let endless = stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(&[b'x'; 4096])));
        let error = read(endless).next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("a line has no end"), "{error}");
    }
}
