//! A connection that ends if its client does not read, or sends too many control frames.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{io, mem};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::frames::Frames;
use super::open::Place;

/// Answers up to this size are copied into one piece: a plain write of it costs the system less
/// than a vectored one.
const COPIED: usize = 2048;

/// Fails writes that have made no progress for a time, and reads with too many control frames.
#[derive(Debug)]
pub(super) struct Written<S> {
    stream: S,
    /// There while a write has to wait.
    timer: Option<Pin<Box<Sleep>>>,
    /// The client has read something since a write last had to wait.
    has_read: bool,
    place: Arc<Place>,
    /// Those of its client, over HTTP/2.
    frames: Option<Frames>,
}

impl<S> Written<S> {
    pub(super) fn new(stream: S, place: Arc<Place>, frames: Option<Frames>) -> Self {
        Self {
            stream,
            place,
            frames,
            timer: None,
            has_read: true,
        }
    }

    /// Counts what waits after a write of `bytes`, for as long as it may.
    fn count(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
        bytes: usize,
    ) -> Poll<io::Result<usize>> {
        if polled.is_ready() {
            self.has_read = true;
            if self.timer.take().is_some() {
                self.place.wait(0, true);
            }
            return polled;
        }
        self.place.wait(bytes as u64, mem::take(&mut self.has_read));
        let timeout = self.place.limits().write;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        let is_late = timer.as_mut().poll(cx);
        is_late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Written<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        let read = buf.filled().get(before..).unwrap_or_default();
        let control = this.frames.as_mut().map(|frames| frames.control(read));
        if control.is_some_and(|control| control > 0 && !this.place.admits(control)) {
            let flood = "the client sends too many control frames";
            return Poll::Ready(Err(io::Error::other(flood)));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Written<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(cx, polled, buf.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = bufs.iter().map(|buf| buf.len()).sum();
        let stream = Pin::new(&mut self.stream);
        let polled = if bytes <= COPIED {
            let mut copy = Vec::with_capacity(bytes);
            bufs.iter().for_each(|buf| copy.extend_from_slice(buf));
            stream.poll_write(cx, &copy)
        } else {
            stream.poll_write_vectored(cx, bufs)
        };
        self.count(cx, polled, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::super::open::{ConnectionLimits, Open};
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn place() -> Arc<Place> {
        let open = Open::new(ConnectionLimits::default());
        Arc::new(open.admit(None, CancellationToken::new()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let mut stream = Written::new(ours, place(), None);
        let began = Instant::now();
        let error = stream.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_served() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut stream = Written::new(ours, place(), None);
        let reading = tokio::spawn(async move {
            let mut read = 0;
            while read < 64 {
                tokio::time::sleep(TIMEOUT / 2).await;
                read += theirs.read(&mut [0; 8]).await.unwrap();
            }
        });
        stream.write_all(&[0; 64]).await.unwrap();
        reading.await.unwrap();
    }
}
