//! One connection, driven by the call that uses it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::coop::unconstrained;

use super::connect::{BoxError, Wire};
use super::outgoing::Outgoing;

/// The longest head of an answer, and how much of a body is read at a time. Many answers may wait
/// for their turn to be read, each with a full buffer.
const BUFFER: usize = 64 * 1024;

/// Why a request has no answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) cause: BoxError,
    /// The request itself, if the connection was gone before it took any of it.
    pub(super) untaken: Option<Request<Outgoing>>,
}

/// One connection to a server.
///
/// hyper splits a connection into a sender of requests and a future that reads and writes. That
/// future usually runs in a task, so each call passes between two tasks, and each step may wake a
/// thread. Here it runs inside the call that uses the connection. Without a call nothing runs:
/// events of an idle connection are noticed when it is used again.
pub(super) struct Conn {
    /// `None` once the connection is dropped.
    requests: Option<SendRequest<Outgoing>>,
    /// `None` once the connection has ended.
    bytes: Option<Connection<Wire, Outgoing>>,
    /// Its permit among the connections to the server.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Conn {
    /// Wraps a new connection.
    pub(super) async fn over(
        wire: Wire,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Box<Self>, hyper::Error> {
        let mut http = Builder::new();
        // a plain write of a small request costs the system less than a vectored one
        http.max_buf_size(BUFFER).writev(false);
        let (requests, bytes) = http.handshake(wire).await?;
        let mut conn = Box::new(Self {
            requests: Some(requests),
            bytes: Some(bytes),
            _permit: permit,
        });
        conn.look();
        Ok(conn)
    }

    /// Reads and writes what can be read and written at once, and registers no waker: those of the
    /// previous call end with it. Returns `true` if the connection can then take a request.
    pub(super) fn look(&mut self) -> bool {
        let _ = self.poll(&mut Context::from_waker(Waker::noop()));
        self.is_ready()
    }

    /// Returns `true` if the connection is up, and everything of the last exchange is done.
    pub(super) fn is_ready(&self) -> bool {
        self.bytes.is_some() && self.requests.as_ref().is_some_and(SendRequest::is_ready)
    }

    /// Reads and writes what can be; ready once the connection is over. The exchange on it receives
    /// how it ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(bytes) = &mut self.bytes
            && Pin::new(bytes).poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        // a request that was not taken comes back when this is dropped
        self.bytes = None;
        Poll::Ready(())
    }

    /// Sends a request and waits for the head of the answer. Dropping the future closes the
    /// connection.
    ///
    /// # Errors
    ///
    /// [`Unanswered`] if the connection breaks; then it is closed.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: Request<Outgoing>,
    ) -> Result<(Box<Self>, Response<Incoming>), Unanswered> {
        let Some(requests) = &mut self.requests else {
            return Err(Unanswered::over(Some(request))); // not reached: only a drop takes them
        };
        let answer = requests.try_send_request(request);
        let answered = {
            // Only what `poll` reads makes it ready, so it needs no wake-up of its own, and must
            // not be held back by the runtime's budget, which would count on one.
            let mut answer = pin!(unconstrained(answer));
            std::future::poll_fn(|cx| {
                let is_over = self.poll(cx).is_ready();
                match answer
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                {
                    Poll::Ready(answer) => Poll::Ready(answer.map_err(|mut error| Unanswered {
                        untaken: error.take_message(),
                        cause: error.into_error().into(),
                    })),
                    // not reached: a closed connection answers every request
                    Poll::Pending if is_over => Poll::Ready(Err(Unanswered::over(None))),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        };
        answered.map(|response| (self, response))
    }
}

impl Unanswered {
    fn over(untaken: Option<Request<Outgoing>>) -> Self {
        let cause = "the connection is over".into();
        Self { cause, untaken }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // No call asks any more: the connection sees it, and notifies the server, under TLS in a
        // message. What cannot be written at once is not waited for.
        self.requests = None;
        let _ = self.poll(&mut Context::from_waker(Waker::noop()));
    }
}
