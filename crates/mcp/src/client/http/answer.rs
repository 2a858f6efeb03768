//! The body of an answer, which drives the connection it comes over.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;

use super::conn::Conn;
use super::pool::Pool;

/// The body of an answer. The connection goes back to the pool as soon as the server has said all;
/// it is closed if it is not read to its end.
pub(super) struct AnswerBody {
    /// `None` once the body is dropped.
    bytes: Option<Incoming>,
    /// `None` once the answer is complete.
    conn: Option<Box<Conn>>,
    pool: Arc<Pool>,
}

impl AnswerBody {
    pub(super) fn new(bytes: Incoming, conn: Box<Conn>, pool: Arc<Pool>) -> Self {
        let mut body = Self {
            bytes: Some(bytes),
            conn: Some(conn),
            pool,
        };
        body.settle(); // a short answer came with its head
        body
    }

    /// Returns the connection to the pool if the answer is complete.
    fn settle(&mut self) {
        if let Some(conn) = self.conn.take_if(|conn| conn.is_ready()) {
            self.pool.put(conn);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(conn) = &mut self.conn {
            let _ = conn.poll(cx); // the bytes show its end
            self.settle();
        }
        let Some(bytes) = &mut self.bytes else {
            return Poll::Ready(None); // not reached: only a drop takes them
        };
        // only the connection brings more, and it was just polled: no wake-up is needed
        Pin::new(bytes).poll_frame(&mut Context::from_waker(Waker::noop()))
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // what came already is passed over; if that is all, the connection can be used again
        self.bytes = None;
        if let Some(mut conn) = self.conn.take()
            && conn.look()
        {
            self.pool.put(conn);
        }
    }
}
