//! Serving over this process's own standard input and output.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use callward_mcp::client::Upstream;
use callward_mcp::server::{Backend, serve_stdio};
use futures_util::StreamExt;
use tokio_util::io::{ReaderStream, StreamReader};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::AppError;
use crate::shutdown::{Stop, drain};

/// How much of the client's data is read at a time.
const BUFFER: usize = 64 * 1024;

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
    // nothing more is taken in after that, and what runs may finish
    let lines = ReaderStream::with_capacity(tokio::io::stdin(), BUFFER);
    let lines = lines.take_until(stop.asked.clone().cancelled_owned());
    let reader = StreamReader::new(Box::pin(lines));
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
        () = stop.asked.cancelled() => {}
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
