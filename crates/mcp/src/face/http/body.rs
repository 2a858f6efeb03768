//! Reads a request body up to a limit, and writes an answer's pieces as one body.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::face::error::Fault;

/// How long a client may send nothing in the middle of a body.
const PAUSE: Duration = Duration::from_secs(30);

/// Reads a whole body.
///
/// What is too long is read on, up to as much again, and thrown away: a server that answers and
/// closes while its client still writes makes the client see a broken connection, not the answer.
///
/// # Errors
///
/// 413 if the body is longer than `limit`, 400 if it breaks off, 408 if no more of it comes for 30 s.
pub(super) async fn read(mut body: Body, limit: usize) -> Result<Bytes, Fault> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0_usize;
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX).saturating_mul(2) {
        return Err(too_long(limit));
    }
    loop {
        // what came so far is held in memory, so it is not held for ever
        let frame = tokio::time::timeout(PAUSE, body.frame()).await;
        let Some(frame) = frame.map_err(|_| stalled())? else {
            break;
        };
        let frame = frame.map_err(|error| {
            Fault::transport(
                StatusCode::BAD_REQUEST,
                format!("the body broke off: {error}"),
            )
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        if length > limit {
            if length > limit.saturating_mul(2) {
                return Err(too_long(limit));
            }
            continue;
        }
        // nearly every body is one piece, which is then not copied
        if first.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    if length > limit {
        return Err(too_long(limit));
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

fn stalled() -> Fault {
    Fault::transport(
        StatusCode::REQUEST_TIMEOUT,
        format!("nothing of the body came for {PAUSE:?}"),
    )
}

fn too_long(limit: usize) -> Fault {
    Fault::transport(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body is longer than {limit} bytes"),
    )
}

/// A body made of a few pieces, none of which is copied.
#[derive(Debug)]
pub(super) struct Pieces(std::array::IntoIter<Bytes, 3>);

impl Pieces {
    pub(super) fn new(pieces: [Bytes; 3]) -> Self {
        Self(pieces.into_iter())
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.find(|piece| !piece.is_empty());
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        let length: usize = self.0.as_slice().iter().map(Bytes::len).sum();
        SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    fn chunked(chunks: &'static [&'static str]) -> Body {
        let chunks = chunks
            .iter()
            .map(|chunk| Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())));
        Body::from_stream(futures_util::stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_up_to_the_limit() {
        assert_eq!(
            read(chunked(&["ab", "", "cd", "e"]), 5).await.unwrap(),
            "abcde"
        );
        assert_eq!(read(Body::empty(), 5).await.unwrap(), "");
        for over in [
            &["abc", "def"][..],
            &["abcdefghijklmnop"][..],
            &["abc", "defgh", "ijklmn"][..],
        ] {
            let fault = read(chunked(over), 5).await.unwrap_err();
            assert_eq!(fault.status, StatusCode::PAYLOAD_TOO_LARGE, "{over:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_is_given_up() {
        let first = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"{"))]);
        let body = Body::from_stream(first.chain(futures_util::stream::pending()));
        let read = tokio::time::timeout(PAUSE * 2, read(body, 5)).await;
        let fault = read.unwrap().unwrap_err();
        assert_eq!(fault.status, StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn pieces_come_in_order_and_know_their_length() {
        let pieces = [
            Bytes::from_static(b"ab"),
            Bytes::new(),
            Bytes::from_static(b"c"),
        ];
        let body = Pieces::new(pieces);
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
    }
}
