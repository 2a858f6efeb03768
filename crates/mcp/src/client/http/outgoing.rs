//! The body of a request, which knows whether its end was taken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of a request. Its last byte, the bracket without which a message is not JSON, is a
/// piece of its own, handed out when the connection asks for it.
///
/// So a request whose last piece was never asked for has not run: the server has neither the length
/// that was announced nor a message it could parse. The HTTP client asks for pieces as it finds
/// space in its buffers, some hundred kilobytes: what is smaller is taken at once, and of it
/// nothing is known but where the connection was gone before.
#[derive(Debug)]
pub(super) struct Outgoing {
    rest: Bytes,
    /// Whether the last byte was taken or withdrawn, whichever came first.
    is_decided: Arc<AtomicBool>,
}

/// Withdraws what was not taken yet.
#[derive(Debug)]
pub(super) struct Upload(Arc<AtomicBool>);

impl Outgoing {
    pub(super) fn new(message: Bytes) -> (Self, Upload) {
        let is_decided = Arc::<AtomicBool>::default();
        let upload = Upload(is_decided.clone());
        let rest = message;
        (Self { rest, is_decided }, upload)
    }
}

impl Upload {
    /// Keeps the end of the body back for good. False if it was taken already.
    pub(super) fn withdraw(self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A request was given up before its end was taken.
#[derive(Debug, thiserror::Error)]
#[error("the request was given up")]
pub(super) struct Withdrawn;

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Withdrawn;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Withdrawn>>> {
        let piece = match self.rest.len() {
            0 => return Poll::Ready(None),
            1 if self.is_decided.swap(true, Ordering::AcqRel) => {
                return Poll::Ready(Some(Err(Withdrawn)));
            }
            1 => self.rest.split_to(1),
            more => self.rest.split_to(more - 1),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
