//! Accepts connections, and serves each until its end.

mod descriptors;
mod frames;
mod held;
mod open;
mod tls;
mod written;

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::HOST;
use axum::http::{HeaderValue, Uri, Version};
use axum::response::Response;
use axum::serve::Listener;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as HyperService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use scopeguard::guard;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::at_once::AtOnce;
use frames::Frames;
use held::Held;
use open::{Asked, Open, Place};
use written::Written;

pub(crate) use descriptors::make_fit;
pub(crate) use open::ConnectionLimits;
pub(crate) use tls::{PeerCertificate, Tls, TlsError, TlsFiles};

/// How much of a client's data is read at a time; the head of a request is not longer.
const BUFFER: usize = 64 * 1024;

/// How often within `header_timeout` and `write_timeout` the listener ends connections that are
/// past them. A timer of each connection, reset for each request, would cost 2 % of a cached call.
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
/// `caller_of` returns the caller's address, if it has one. With `tls`, clients may choose HTTP/2;
/// without it, all is in clear text.
pub(crate) async fn serve<L, R>(
    mut listener: L,
    caller_of: fn(L::Addr) -> Option<SocketAddr>,
    routes: R,
    limits: ConnectionLimits,
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
) where
    L: Listener,
    R: Routes<Future: Send>,
{
    let open = TaskTracker::new();
    let mut sweep =
        interval((limits.header.min(limits.write) / SWEEPS).max(Duration::from_millis(1)));
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
            let (place, routes, stop) = (Arc::new(place), routes.clone(), stop.clone());
            let client = Client {
                caller,
                certificate: None,
                place,
            };
            match tls.clone() {
                None => open.spawn(AtOnce::new(plain(stream, client, routes, stop))),
                Some(tls) => open.spawn(AtOnce::new(secured(tls, stream, client, routes, stop))),
            };
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Who asks on a connection.
struct Client {
    caller: Option<SocketAddr>,
    certificate: Option<Arc<PeerCertificate>>,
    place: Arc<Place>,
}

impl Client {
    /// Takes a request in, with what is known of its client.
    fn asks(&self, mut request: http::Request<Incoming>) -> (Request, Arc<Asked>) {
        if request.version() == Version::HTTP_2 {
            to_origin_form(&mut request);
        }
        // spans record the client's address
        if let Some(caller) = self.caller {
            request.extensions_mut().insert(ConnectInfo(caller));
        }
        if let Some(certificate) = &self.certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        let asked = Asked::new(&self.place);
        if request.body().is_end_stream() {
            asked.come();
        }
        // the service drops the body as soon as all of it has arrived
        let arrived = guard(asked.clone(), |asked| asked.come());
        let request = request.map(|body| Body::new(until_dropped(body, arrived)));
        (request, asked)
    }
}

/// Returns what answers the requests of a connection. `until_ended` notes the end of an answer.
fn service<R: Routes<Future: Send>, B: http_body::Body + 'static>(
    client: Client,
    routes: R,
    until_ended: fn(Body, Arc<Asked>) -> B,
) -> impl HyperService<
    http::Request<Incoming>,
    Response = Response<B>,
    Error = Infallible,
    Future: Send + 'static,
> {
    service_fn(move |request| {
        let (request, asked) = client.asks(request);
        let mut routes = routes.clone();
        async move {
            let response = routes.call(request).await?;
            asked.answer();
            Ok(response.map(|body| until_ended(body, asked)))
        }
    })
}

/// Serves one connection over HTTP/1.1.
async fn plain<S, R>(stream: S, client: Client, routes: R, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Routes<Future: Send>,
{
    let (caller, place) = (client.caller, client.place.clone());
    let stream = TokioIo::new(Written::new(stream, place.clone(), None));
    let serving = http1::Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(stream, service(client, routes, until_dropped));
    run(serving, caller, &place, &stop).await;
}

/// How many requests a connection of HTTP/2 may have at a time.
const STREAMS: u32 = 100;

/// How many bytes of bodies a connection of HTTP/2 may send before they are read; of one body it
/// may send [`BUFFER`].
const WINDOW: usize = 4 * BUFFER;

/// How many streams their client may reset before the gateway has seen them, and how many may be
/// reset for their errors: more end the connection.
const RESETS: (usize, usize) = (20, 256);

/// How often clients of HTTP/2 are asked whether they are there, and how long an answer may take.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Serves one connection over HTTP/2.
async fn multiplexed<S, R>(stream: S, client: Client, routes: R, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Routes<Future: Send>,
{
    let (caller, place) = (client.caller, client.place.clone());
    let frames = Some(Frames::new());
    let stream = TokioIo::new(Written::new(stream, place.clone(), frames));
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(BUFFER as u32)
        .max_pending_accept_reset_streams(RESETS.0)
        .max_local_error_reset_streams(RESETS.1)
        .max_send_buf_size(BUFFER)
        .initial_stream_window_size(BUFFER as u32)
        .initial_connection_window_size(WINDOW as u32)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .serve_connection(stream, service(client, routes, Held::new));
    run(serving, caller, &place, &stop).await;
}

/// Serves one connection after its handshake, over HTTP/2 if its client prefers that.
async fn secured<S, R>(
    tls: Arc<Tls>,
    stream: S,
    mut client: Client,
    routes: R,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Routes<Future: Send>,
{
    let end = client.place.end().clone();
    let Some(accepted) = end.run_until_cancelled(tls.accept(stream)).await else {
        return;
    };
    let (stream, certificate) = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            tracing::debug!(caller = ?client.caller, %error, "a TLS handshake failed");
            return;
        }
    };
    client.certificate = certificate;
    if stream.get_ref().1.alpn_protocol() == Some(tls::H2) {
        multiplexed(stream, client, routes, stop).await;
    } else {
        plain(stream, client, routes, stop).await;
    }
}

/// Runs a connection to its end. Once `stop` fires it answers its requests, and ends.
async fn run(
    serving: impl GracefulConnection<Error: Display>,
    caller: Option<SocketAddr>,
    place: &Place,
    stop: &CancellationToken,
) {
    let mut serving = pin!(serving);
    let served = match place.end().run_until_cancelled(serving.as_mut()).await {
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

/// Gives a request of HTTP/2 the form of HTTP/1.1, which hosts are checked in: its authority is in
/// `Host`, and its target is a path. A `Host` that differs from the authority stays beside it, and
/// two are refused.
fn to_origin_form<B>(request: &mut http::Request<B>) {
    let Some(authority) = request.uri().authority() else {
        return;
    };
    let Ok(host) = HeaderValue::from_str(authority.as_str()) else {
        return;
    };
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    if request.headers().get(HOST) != Some(&host) {
        request.headers_mut().append(HOST, host);
    }
}

/// Returns the body as it is; `end` is dropped together with it.
fn until_dropped<B: http_body::Body + 'static>(
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

#[cfg(test)]
mod tests;
