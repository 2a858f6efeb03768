//! Serving over this process's own standard input and output.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use callward_mcp::server::{Backend, serve_stdio};
use futures_util::{StreamExt, stream};
use tokio_util::io::{ReaderStream, StreamReader};
use tokio_util::sync::CancellationToken;

use crate::error::AppError;
use crate::shutdown::{self, Stop};

/// How much of the client's data is read at a time.
const BUFFER: usize = 64 * 1024;

/// Serves the client at the other end until it leaves, or until asked to stop; then lets calls in
/// flight end, within the limit; those that do not fail when `end_servers` is done.
///
/// # Errors
///
/// [`AppError`] if reading or writing fails.
pub(crate) async fn serve<B: Backend>(
    backend: Arc<B>,
    limit: Duration,
    end_servers: impl Future<Output = ()>,
    stop: &Stop,
) -> Result<(), AppError> {
    let lines = ReaderStream::with_capacity(tokio::io::stdin(), BUFFER);
    let lines = lines.take_until(stop.asked.cancelled());
    // nothing more is taken in from here on, and what runs may finish
    let lines = lines.chain(stream::poll_fn(|_| {
        stop.closing.cancel();
        Poll::Ready(None)
    }));
    let reader = StreamReader::new(Box::pin(lines));
    let (never, answered) = (CancellationToken::new(), CancellationToken::new());
    let serving = async {
        let _answered = answered.drop_guard_ref();
        serve_stdio(backend, reader, tokio::io::stdout(), never).await
    };
    // a message that was read need not be a call yet
    let drained = answered.cancelled();
    let served = shutdown::serve(serving, drained, end_servers, stop, Duration::ZERO, limit);
    served
        .await
        .map_err(AppError::io("serving over stdio failed"))
}
