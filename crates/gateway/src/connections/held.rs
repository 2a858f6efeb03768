//! An answer over HTTP/2, whose client decides how much of it may be sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::open::Asked;

/// The most that is given out at a time: of what is given out, the last piece is not counted.
const PIECE: usize = 8 * 1024;

/// Counts what its client has not taken yet.
#[derive(Debug)]
pub(super) struct Held {
    body: Body,
    /// What is left of the frame that was read last.
    rest: Bytes,
    counted: u64,
    asked: Arc<Asked>,
}

impl Held {
    pub(super) fn new(body: Body, asked: Arc<Asked>) -> Self {
        let mut held = Self {
            body,
            rest: Bytes::new(),
            counted: 0,
            asked,
        };
        held.count(0);
        held
    }

    /// Counts a piece that was given out, and what is behind it.
    fn count(&mut self, piece: usize) {
        let waiting = http_body::Body::size_hint(self).lower() + piece as u64;
        let before = std::mem::replace(&mut self.counted, waiting);
        self.asked.hold(before, waiting);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.asked.hold(self.counted, 0);
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        // the next piece is wanted: the client takes the one before
        this.count(0);
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx))
                .map(|next| next.map(Frame::into_data))
            {
                Some(Ok(Ok(data))) => this.rest = data,
                Some(Ok(Err(frame))) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        this.count(piece.len());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut all = SizeHint::new();
        all.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio_util::sync::CancellationToken;

    use super::super::open::{ConnectionLimits, Open};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_for_nothing_of_its_answer_is_given_up() {
        let limits = ConnectionLimits::default();
        let (open, time) = (Open::new(limits.clone()), limits.write);
        let place = Arc::new(open.admit(None, CancellationToken::new()).unwrap());
        let answer = || Held::new(Body::from(vec![0; 20_000]), Asked::new(&place));
        let is_ended = || {
            open.end_idle();
            place.end().is_cancelled()
        };
        let (mut read, mut pieces) = (answer(), Vec::new());
        while let Some(frame) = read.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap().len());
            tokio::time::advance(time * 2 / 3).await;
            assert!(!is_ended());
        }
        assert_eq!(pieces, [PIECE, PIECE, 20_000 - 2 * PIECE]);
        // nothing waits
        tokio::time::advance(time).await;
        assert!(!is_ended());
        let _unread = answer();
        tokio::time::advance(time).await;
        assert!(is_ended());
    }
}
