//! Accepts connections, and serves each until its end.

#[cfg(unix)]
mod descriptors;
mod open;
mod written;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use http::Request;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::at_once::AtOnce;
use open::{Open, Place, Running, Unread};
use written::Written;

#[cfg(unix)]
pub(crate) use descriptors::make_fit;
pub(crate) use open::ConnectionLimits;

/// So much of what a client sends is read at a time; the head of a request is no longer.
const BUFFER: usize = 64 * 1024;

/// Accepts connections until `stop` fires; then waits until each has answered what it was asked.
pub(crate) async fn serve<L>(
    mut listener: L,
    routes: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) where
    L: Listener,
    L::Io: Accepted<L::Addr>,
{
    let open = TaskTracker::new();
    let places = Open::new(limits);
    // one that fails to accept waits and tries again: it ends with `stop` only
    while let Some((stream, caller)) = stop
        .run_until_cancelled(Listener::accept(&mut listener))
        .await
    {
        let caller = stream.accepted(caller);
        // without a place it is closed
        if let Some(place) = places.admit(caller.map(|caller| caller.ip())) {
            let stream = Written::new(stream, place.limits().write, place.unread());
            let connection = connection(stream, caller, place, routes.clone(), stop.clone());
            open.spawn(AtOnce::new(connection));
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Serves one connection. Once `stop` fires it answers what it was asked, and ends.
async fn connection<S>(
    stream: S,
    caller: Option<SocketAddr>,
    place: Place,
    routes: Router,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Arc::new(place);
    let header = place.limits().header;
    let end = place.end().clone();
    let answer = service_fn(move |mut request: Request<Incoming>| {
        // spans tell where calls come from
        if let Some(caller) = caller {
            request.extensions_mut().insert(ConnectInfo(caller));
        }
        let (running, unread) = (Arc::new(place.run()), place.unread());
        if request.body().is_end_stream() {
            running.begin();
        }
        let request = request.map(|body| Arriving {
            body,
            running: running.clone(),
        });
        let answering = routes.clone().call(request);
        async move {
            let response = answering.await?;
            Ok::<_, Infallible>(response.map(|body| Answer {
                body,
                unread,
                running,
            }))
        }
    });
    let mut serving = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), answer)
    );
    let served = tokio::select! {
        biased;
        () = end.cancelled() => return,
        served = stop.run_until_cancelled(serving.as_mut()) => served,
    };
    let served = match served {
        Some(served) => served,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::trace!(?caller, %error, "a connection broke");
    }
}

/// The body of a request. The request is in work once all of it has come.
struct Arriving {
    body: Incoming,
    running: Arc<Running>,
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.running.begin();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. Its request is in work until this is dropped.
struct Answer {
    body: Body,
    unread: Unread,
    #[expect(dead_code, reason = "its drop says that the answer has ended")]
    running: Arc<Running>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let unread = &self.unread;
        polled.map_ok(|frame| frame.map_data(|data| unread.clone().count(data)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that was just accepted.
pub(crate) trait Accepted<Address> {
    /// Sets what connections of this kind need, and returns the caller's address, if it has one.
    fn accepted(&self, address: Address) -> Option<SocketAddr>;
}

impl Accepted<SocketAddr> for TcpStream {
    fn accepted(&self, address: SocketAddr) -> Option<SocketAddr> {
        // Nagle with delayed ACK holds the second part of an answer for 40 ms
        if let Err(error) = self.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
        Some(address)
    }
}

#[cfg(unix)]
impl Accepted<tokio::net::unix::SocketAddr> for tokio::net::UnixStream {
    fn accepted(&self, _: tokio::net::unix::SocketAddr) -> Option<SocketAddr> {
        None
    }
}
