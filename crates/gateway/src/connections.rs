//! Accepts connections, and serves each until its end.

use std::net::SocketAddr;
use std::pin::pin;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::at_once::AtOnce;

/// Accepts connections until `stop` fires; then waits until each has answered what it was asked.
pub(crate) async fn serve<L>(mut listener: L, routes: Router, stop: CancellationToken)
where
    L: Listener,
    L::Io: Accepted<L::Addr>,
{
    let open = TaskTracker::new();
    // one that fails to accept waits and tries again: it ends with `stop` only
    while let Some((stream, caller)) = stop
        .run_until_cancelled(Listener::accept(&mut listener))
        .await
    {
        let caller = stream.accepted(caller);
        let connection = connection(stream, caller, routes.clone(), stop.clone());
        open.spawn(AtOnce::new(connection));
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Serves one connection. Once `stop` fires it answers what it was asked, and ends.
async fn connection<S>(
    stream: S,
    caller: Option<SocketAddr>,
    routes: Router,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |mut request: Request<Incoming>| {
        // spans tell where calls come from
        if let Some(caller) = caller {
            request.extensions_mut().insert(ConnectInfo(caller));
        }
        routes.clone().call(request)
    });
    let io = TokioIo::new(stream);
    let mut serving = pin!(http1::Builder::new().serve_connection(io, answer));
    let served = match stop.run_until_cancelled(serving.as_mut()).await {
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
