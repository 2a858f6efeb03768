//! Reads request bodies up to a limit.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::server::error::Fault;

/// When a client may resend a large body that was refused for lack of space.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How much of each body is not counted: clients that send small ones do not wait for clients that
/// send large ones slowly. The bound on connections bounds this, too.
const FREE: usize = 64 * 1024;

/// The size of the blocks that hold a body while it arrives. After each one other tasks run: it may
/// arrive as fast as it is read.
const BLOCK: usize = 32 * 1024;

/// How long the body of a refused request may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads a small body of a request that is refused. Over HTTP/2 an answer before the end of the
/// request resets its stream, and some clients then lose the answer.
pub(super) async fn discard(body: Body) {
    let _ = timeout(PATIENCE, Limited::new(body, FREE).collect()).await;
}

/// Reads bodies, and bounds how many bytes of them are held at a time.
#[derive(Debug)]
pub(super) struct Bodies {
    /// The longest body, in bytes.
    limit: usize,
    timeout: Duration,
    /// A permit for each byte beyond the first [`FREE`] ones of a body.
    space: Arc<Semaphore>,
}

/// The bytes of one body that are counted, until this is dropped.
pub(super) type Held = Option<OwnedSemaphorePermit>;

impl Bodies {
    /// `limit` is the longest body, `all` how many bytes of all are held, and `timeout` how long
    /// one may take to come.
    pub(super) fn new(limit: usize, all: usize, timeout: Duration) -> Self {
        Self {
            limit,
            timeout,
            space: Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Reads a whole body.
    ///
    /// # Errors
    ///
    /// 413 if the body is too long, 400 if it breaks off, 408 if it takes too long, and 503 if too
    /// many bytes of others are held.
    pub(super) async fn read(&self, body: Body) -> Result<(Bytes, Held), Fault> {
        let mut held = None;
        let read = read(body, self.limit, |length| self.hold(length, &mut held));
        let body = timeout(self.timeout, read).await.map_err(|_| {
            let text = format!("the body did not come within {:?}", self.timeout);
            Fault::transport(StatusCode::REQUEST_TIMEOUT, text)
        })??;
        Ok((body, held))
    }

    /// Counts a body that takes this many bytes by now.
    fn hold(&self, length: usize, held: &mut Held) -> Result<(), Fault> {
        let counted = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = length.saturating_sub(FREE).saturating_sub(counted);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let space = Arc::clone(&self.space).try_acquire_many_owned(more);
        let space = space.map_err(|_| {
            let text = "too many large requests are being read";
            Fault::overloaded(text, Some(RETRY_AFTER))
        })?;
        match held {
            Some(held) => held.merge(space),
            None => *held = Some(space),
        }
        Ok(())
    }
}

/// Reads a whole body; `hold` receives how much memory it takes so far.
///
/// What is too long is read on, up to as much again, and thrown away: a server that answers and
/// closes while its client still writes makes the client see a broken connection, not the answer.
async fn read(
    mut body: Body,
    limit: usize,
    mut hold: impl FnMut(usize) -> Result<(), Fault>,
) -> Result<Bytes, Fault> {
    let mut first = Bytes::new();
    let mut rest: Vec<Vec<u8>> = Vec::new();
    let (mut length, mut unyielded) = (0_usize, 0_usize);
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX).saturating_mul(2) {
        return Err(too_long(limit));
    }
    loop {
        if unyielded > BLOCK {
            tokio::task::yield_now().await;
            unyielded = 0;
        }
        let Some(frame) = body.frame().await else {
            break;
        };
        let frame = frame.map_err(|error| {
            let text = format!("the body broke off: {error}");
            Fault::transport(StatusCode::BAD_REQUEST, text)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        unyielded = unyielded.saturating_add(data.len());
        if length > limit {
            if length > limit.saturating_mul(2) {
                return Err(too_long(limit));
            }
            continue;
        }
        // nearly every body is one piece, which is then not copied
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            // the pieces are slices of larger buffers, which end with them
            append(&mut rest, &std::mem::take(&mut first));
            append(&mut rest, &data);
        }
        let taken = length.max(rest.len() * BLOCK);
        if taken > FREE {
            hold(taken)?;
        }
    }
    if length > limit {
        return Err(too_long(limit));
    }
    Ok(match rest.is_empty() {
        true => first,
        false => rest.concat().into(),
    })
}

/// Appends to blocks of equal size: a buffer that grows is copied, and leaves the allocator with
/// pieces of many sizes.
fn append(blocks: &mut Vec<Vec<u8>>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        if blocks.last().is_none_or(|last| last.len() == BLOCK) {
            blocks.push(Vec::with_capacity(BLOCK));
        }
        if let Some(last) = blocks.last_mut() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - last.len()));
            last.extend_from_slice(now);
            bytes = later;
        }
    }
}

fn too_long(limit: usize) -> Fault {
    let text = format!("the body is longer than {limit} bytes");
    Fault::transport(StatusCode::PAYLOAD_TOO_LARGE, text)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;

    use futures_util::{StreamExt, stream};
    use tokio::time::{Instant, sleep};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    fn bodies(limit: usize) -> Bodies {
        Bodies::new(limit, FREE, TIMEOUT)
    }

    #[tokio::test]
    async fn a_body_is_read_whole_up_to_the_limit() {
        for (chunks, expected) in [
            (&["ab", "", "cd", "e"][..], Ok("abcde")),
            (&[], Ok("")),
            (&["abc", "def"], Err(413)),
            (&["abcdefghijklmnop"], Err(413)),
            (&["abc", "defgh", "ijklmn"], Err(413)),
        ] {
            let chunks = chunks.iter().copied().map(Ok::<_, Infallible>);
            let body = Body::from_stream(stream::iter(chunks));
            let read = bodies(5).read(body).await;
            let read = read.map(|(body, _)| body);
            let read = read.map_err(|fault| fault.status.as_u16());
            assert_eq!(read, expected.map(Bytes::from));
        }
    }

    #[tokio::test]
    async fn a_long_body_in_pieces_is_read_whole_and_takes_blocks_only() {
        const LENGTH: usize = 3 * BLOCK + 5;
        let text: Vec<u8> = (0..LENGTH)
            .map(|at| u8::try_from(at % 251).unwrap())
            .collect();
        for size in [1000, BLOCK - 1, BLOCK, 2 * BLOCK + 1] {
            let pieces = text.chunks(size).map(Bytes::copy_from_slice);
            let pieces = pieces.map(Ok::<_, Infallible>).collect::<Vec<_>>();
            let body = Body::from_stream(stream::iter(pieces));
            let mut most = 0;
            let read = read(body, LENGTH, |held| {
                most = held;
                Ok(())
            });
            assert!(read.await.unwrap() == text, "{size}");
            assert!(most <= 4 * BLOCK, "{size}: {most}");
        }
    }

    #[tokio::test]
    async fn a_long_body_lets_other_tasks_run() {
        let body = Body::from_stream(stream::iter(
            [const { Bytes::from_static(&[b' '; BLOCK]) }; 8].map(Ok::<_, Infallible>),
        ));
        let mut reading = pin!(read(body, 8 * BLOCK, |_| Ok(())));
        assert!(futures_util::poll!(&mut reading).is_pending());
        assert_eq!(reading.await.unwrap().len(), 8 * BLOCK);
    }

    /// A body of `bytes` bytes whose client then sends no more, and does not end it.
    fn unfinished(bytes: usize) -> Body {
        let first = stream::iter([Ok::<_, Infallible>(vec![b' '; bytes])]);
        Body::from_stream(first.chain(stream::pending()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_slowly_is_given_up() {
        let drops = stream::repeat_with(|| Ok::<_, Infallible>(" "));
        let slow = drops.then(|drop| async move {
            sleep(TIMEOUT / 4).await;
            drop
        });
        for body in [unfinished(1), Body::from_stream(slow)] {
            let began = Instant::now();
            let fault = bodies(100).read(body).await.unwrap_err();
            assert_eq!(fault.status, StatusCode::REQUEST_TIMEOUT);
            assert_eq!(began.elapsed(), TIMEOUT);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_share_a_limit_and_small_ones_always_fit() {
        let bodies = bodies(4 * FREE);
        let large = || Body::from(vec![b' '; 2 * FREE]);
        let mut slow = Box::pin(bodies.read(unfinished(2 * FREE)));
        assert!(futures_util::poll!(&mut slow).is_pending());
        let fault = bodies.read(large()).await.unwrap_err();
        assert_eq!(fault.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(bodies.read(Body::from(vec![b' '; FREE])).await.is_ok());
        drop(slow);
        let (_, held) = bodies.read(large()).await.unwrap();
        // held until it is answered
        assert!(bodies.read(large()).await.is_err());
        drop(held);
        assert!(bodies.read(large()).await.is_ok());
    }
}
