//! Accepts connections, and serves each until its end.

mod descriptors;
mod open;
mod written;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::serve::Listener;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use scopeguard::guard;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::at_once::AtOnce;
use open::{Open, Place};
use written::Written;

pub(crate) use descriptors::make_fit;
pub(crate) use open::ConnectionLimits;

/// How much of a client's data is read at a time; the head of a request is not longer.
const BUFFER: usize = 64 * 1024;

/// How often within `header_timeout` the listener ends connections that are past it. A timer of
/// each connection, reset for each request, would cost 2 % of a cached call.
const SWEEPS: u32 = 4;

/// What answers requests: a router, or a function.
pub(crate) trait Routes:
    Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static
{
}

impl<S> Routes for S where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static
{
}

/// Accepts connections until `stop` fires; then waits until each has answered what it was asked.
/// `caller_of` returns the caller's address, if it has one.
pub(crate) async fn serve<L, R>(
    mut listener: L,
    caller_of: fn(L::Addr) -> Option<SocketAddr>,
    routes: R,
    limits: ConnectionLimits,
    stop: CancellationToken,
) where
    L: Listener,
    R: Routes<Future: Send>,
{
    let open = TaskTracker::new();
    let mut sweep = interval((limits.header / SWEEPS).max(Duration::from_millis(1)));
    let places = Open::new(limits);
    // a failed accept is tried again after a pause: the loop ends with `stop` only
    loop {
        let (stream, caller) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            // before new connections, which may never stop
            _ = sweep.tick() => {
                places.end_idle();
                continue;
            }
            accepted = Listener::accept(&mut listener) => accepted,
        };
        let caller = caller_of(caller);
        // without a permit it is closed
        if let Some(place) = places.admit(caller.map(|caller| caller.ip()), stop.child_token()) {
            let place = Arc::new(place);
            let stream = Written::new(stream, place.clone());
            let connection = connection(stream, caller, place, routes.clone(), stop.clone());
            open.spawn(AtOnce::new(connection));
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Serves one connection. Once `stop` fires it answers its requests, and ends.
async fn connection<S, R>(
    stream: S,
    caller: Option<SocketAddr>,
    place: Arc<Place>,
    routes: R,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Routes<Future: Send>,
{
    let end = place.end().clone();
    let answer = service_fn(move |mut request: http::Request<Incoming>| {
        // spans record the client's address
        if let Some(caller) = caller {
            request.extensions_mut().insert(ConnectInfo(caller));
        }
        let place = place.clone();
        place.read();
        if request.body().is_end_stream() {
            place.run();
        }
        // the service drops the body as soon as all of it has arrived
        let arrived = guard(place.clone(), |place| place.run());
        let request = request.map(|body| Body::new(until_dropped(body, arrived)));
        let mut routes = routes.clone();
        async move {
            let response = routes.call(request).await?;
            place.answer();
            let answered = guard(place, |place| place.answered());
            Ok::<_, Infallible>(response.map(|body| until_dropped(body, answered)))
        }
    });
    let mut serving = pin!(
        http1::Builder::new()
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), answer)
    );
    let served = match end.run_until_cancelled(serving.as_mut()).await {
        Some(served) => served,
        None if !stop.is_cancelled() => return,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::trace!(?caller, %error, "a connection broke");
    }
}

/// Returns the body as it is; `end` is dropped together with it.
fn until_dropped<B: http_body::Body>(
    body: B,
    end: impl Send,
) -> impl http_body::Body<Data = B::Data, Error = B::Error> {
    body.map_err(move |error| {
        let _ = &end;
        error
    })
}

/// How many bytes the system keeps for a client that does not read, besides those on their way. Its
/// own limit is some megabytes.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Sets what connections over TCP need.
pub(crate) fn prepare(stream: &mut TcpStream) {
    // Nagle with delayed ACK holds the second part of an answer for 40 ms
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(&*stream).set_tcp_notsent_lowat(UNSENT) {
        tracing::debug!(%error, "no TCP_NOTSENT_LOWAT");
    }
}
