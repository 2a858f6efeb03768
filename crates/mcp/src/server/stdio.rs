//! Serves one client over a pair of pipes: a message a line, both eras, chosen per message.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Backend;
use super::answer::Answer;
use super::conversation::Conversation;
use super::service::Dispatcher;
use crate::wire::{DEFAULT_MAX_LINE, LineReader};

/// How many messages may wait for the client to read them before calls have to wait.
const QUEUE: usize = 256;

/// How long the last messages may take once the server is asked to stop.
const FLUSH_GRACE: Duration = Duration::from_secs(1);

/// Serves one client over a reader and a writer until the reader ends, the client stops reading, or
/// `shutdown` fires.
///
/// Messages are separated by line breaks; a line may have 16 MiB. Calls run at the same time, and
/// each is dropped when the client cancels it. Calls still running when the reader ends are
/// finished and answered. On `shutdown` they are dropped, and what is already queued is written.
///
/// Everything runs inside this future or in tasks that end with it.
///
/// # Errors
///
/// What the reader or the writer failed with; a client that went away is not an error.
pub async fn serve_stdio<B, R, W>(
    backend: Arc<B>,
    reader: R,
    writer: W,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    B: Backend,
    R: AsyncRead,
    W: AsyncWrite,
{
    let (out, queue) = mpsc::channel(QUEUE);
    let mut conversation =
        Conversation::new(Dispatcher::new(backend, CancellationToken::new()), out);
    let reading = async {
        let reader = pin!(reader);
        let mut lines = LineReader::new(reader, DEFAULT_MAX_LINE);
        let end = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            end = conversation.run(&mut lines) => end,
        };
        conversation.end().await;
        end
    };
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(FLUSH_GRACE).await;
    };
    let writing = async {
        tokio::select! {
            biased;
            end = write_all(queue, writer) => end,
            () = overdue => Ok(()),
        }
    };
    let (read, written) = tokio::join!(reading, writing);
    read?;
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes what is queued, flushing whenever the queue runs empty.
async fn write_all(mut queue: mpsc::Receiver<Answer>, writer: impl AsyncWrite) -> io::Result<()> {
    let mut writer = pin!(BufWriter::new(writer));
    while let Some(answer) = queue.recv().await {
        for piece in answer.into_lines() {
            writer.write_all(&piece).await?;
        }
        writer.write_all(b"\n").await?;
        if queue.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}
