//! The router's events, as server-sent events: each is one `data` line with a JSON object.
//!
//! A slow listener loses the oldest events and gets their number; no call waits for
//! one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};

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
    // listens before the answer begins: a client that has its head misses nothing
    let events = runtime.stack.route_events();
    let events = events.map(|event| match serde_json::to_string(&event) {
        Ok(text) => Event::default().data(text),
        Err(error) => {
            tracing::warn!(%error, "an event cannot be written");
            Event::default().comment(COMMENT)
        }
    });
    // the head goes out with the first part
    let first = stream::once(std::future::ready(Event::default().comment(COMMENT)));
    let stop = runtime.stop.closing.clone();
    let all = first.chain(events).take_until(stop.cancelled_owned());
    Sse::new(all.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE).text(COMMENT))
        .into_response()
}

/// The client's side: one event after the other.
pub(crate) struct Events {
    answer: reqwest::Response,
    /// Received bytes that were not read yet: whole lines, and the beginning of one.
    rest: Vec<u8>,
}

impl Events {
    pub(super) const fn new(answer: reqwest::Response) -> Self {
        Self {
            answer,
            rest: Vec::new(),
        }
    }

    /// Waits for the next event, as JSON; `None` once the gateway has ended the stream. Dropping
    /// the future loses nothing.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the connection breaks, or an answer is not an event.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, AppError> {
        loop {
            if let Some(event) = take_event(&mut self.rest) {
                return Ok(Some(event));
            }
            if self.rest.len() > LONGEST {
                return Err(AppError::Remote(
                    "the answer is not an event: a line has no end".into(),
                ));
            }
            match self.answer.chunk().await {
                Ok(Some(part)) => self.rest.extend_from_slice(&part),
                Ok(None) => return Ok(None),
                Err(error) => {
                    let text = format!("the gateway went away: {}", super::client::cause(&error));
                    return Err(AppError::Remote(text));
                }
            }
        }
    }
}

/// Takes the first `data` line out of the received bytes; lines before it are comments or blank.
fn take_event(rest: &mut Vec<u8>) -> Option<String> {
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = rest.drain(..=end).collect();
        if let Some(data) = line.strip_prefix(b"data:") {
            return Some(String::from_utf8_lossy(data).trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_whole_wherever_they_are_cut() {
        let whole = ": callward\n\ndata: {\"a\":1}\n\n: callward\n\ndata: {\"b\":\"é\"}\r\n\r\n";
        for size in 1..whole.len() {
            let mut rest = Vec::new();
            let mut found = Vec::new();
            for part in whole.as_bytes().chunks(size) {
                rest.extend_from_slice(part);
                found.extend(std::iter::from_fn(|| take_event(&mut rest)));
            }
            assert_eq!(found, ["{\"a\":1}", "{\"b\":\"é\"}"], "{size}");
            assert!(rest.is_empty());
        }
    }
}
