//! Serving over this process's own standard input and output.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_mcp::client::Upstream;
use callward_mcp::server::{Backend, serve_stdio};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

use crate::error::AppError;
use crate::shutdown::{Stop, drain};

/// How long the last answers may take to be written, once no call is in flight.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Serves the client at the other end until it leaves, or until asked to stop; then lets calls in
/// flight end, within the limit; those that do not end with `servers`.
///
/// # Errors
///
/// [`AppError`] if reading or writing fails.
pub(crate) async fn serve<B: Backend>(
    backend: Arc<B>,
    calls: &TaskTracker,
    limit: Duration,
    servers: &[Upstream],
    stop: &Stop,
) -> Result<(), AppError> {
    let reader = UntilStopped {
        inner: tokio::io::stdin(),
        stopped: stop.asked().clone().cancelled_owned(),
    };
    let cut = CancellationToken::new();
    let mut serving = pin!(serve_stdio(
        backend,
        reader,
        tokio::io::stdout(),
        cut.clone()
    ));
    let broke = AppError::io("serving over stdio failed");
    tokio::select! {
        biased;
        () = stop.asked().cancelled() => {}
        ended = &mut serving => return ended.map_err(broke),
    }
    let stopping = async {
        drain(calls, limit, servers, stop).await;
        // a call that ended is not yet an answer that was written
        tokio::time::sleep(LAST_WRITES).await;
        cut.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = &mut serving => ended.map_err(broke),
        () = stopping => Ok(()),
    }
}

pin_project! {
    /// A reader that ends when asked to: nothing more is taken in, and what runs may finish.
    struct UntilStopped<R> {
        #[pin]
        inner: R,
        #[pin]
        stopped: WaitForCancellationFutureOwned,
    }
}

impl<R: AsyncRead> AsyncRead for UntilStopped<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if this.stopped.poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        this.inner.poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_reader_ends_when_asked_to_though_its_source_does_not() {
        let (mut there, here) = tokio::io::duplex(16);
        let stop = CancellationToken::new();
        let mut reader = pin!(UntilStopped {
            inner: here,
            stopped: stop.clone().cancelled_owned()
        });
        there.write_all(b"ab").await.unwrap();
        assert_eq!(reader.read_u8().await.unwrap(), b'a');
        let asked = async {
            tokio::task::yield_now().await;
            stop.cancel();
        };
        let mut rest = Vec::new();
        let (read, ()) = tokio::join!(reader.read_to_end(&mut rest), asked);
        assert_eq!((read.unwrap(), &rest[..]), (1, &b"b"[..]));
        drop(there);
    }
}
