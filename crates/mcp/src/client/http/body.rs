//! Reads the bodies of answers, none of them longer than a limit, and few long ones at a time.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;

use crate::client::answer::RequestError;
use crate::wire::{LONG_SIZE, LongMessages, SHORT};

/// How much of a body is read that only explains a refusal.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long the body of a refusal may take: its status is known already.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

/// Appends to a buffer. A long one gets `long` bytes at once, but no more than `limit`: it would be
/// moved again and again while it grows.
pub(super) fn append(buffer: &mut Vec<u8>, bytes: &[u8], long: usize, limit: usize) {
    if buffer.len() > SHORT {
        buffer.reserve_exact(long.min(limit).saturating_sub(buffer.len()));
    }
    buffer.extend_from_slice(bytes);
}

/// What was read of a body.
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    /// Why the body is incomplete, if it is. The message may be complete even so: the last chunk or
    /// white space may be missing.
    pub(super) broken: Option<RequestError>,
    /// Its place among the long answers.
    _place: Option<OwnedSemaphorePermit>,
}

/// Reads a whole body. The usual one arrives in one piece and is not copied.
///
/// # Errors
///
/// One longer than the limit.
pub(super) async fn whole<B>(
    mut body: B,
    limit: usize,
    long: &LongMessages,
) -> Result<Whole, RequestError>
where
    B: Body<Data = Bytes, Error: std::error::Error + 'static> + Unpin,
{
    let stated = body.size_hint().exact();
    let long_size = stated.map_or(LONG_SIZE, |size| usize::try_from(size).unwrap_or(LONG_SIZE));
    let mut place = None;
    let mut first = Bytes::new();
    let mut rest: Option<Vec<u8>> = None;
    let broken = loop {
        let read = rest.as_ref().map_or(first.len(), Vec::len);
        long.admit(read, &mut place).await;
        let frame = match body.frame().await {
            Some(Ok(frame)) => frame,
            None => break None,
            Some(Err(error)) => break Some(broken(&error)),
        };
        let Ok(chunk) = frame.into_data() else {
            continue; // trailers
        };
        if read + chunk.len() > limit {
            return Err(RequestError::too_large(limit));
        }
        match &mut rest {
            Some(rest) => append(rest, &chunk, long_size, limit),
            None if first.is_empty() => first = chunk,
            None => {
                let mut all = Vec::with_capacity(read + chunk.len());
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&chunk);
                rest = Some(all);
            }
        }
    };
    // spare capacity is released: the answer may be kept for long
    let bytes = rest.map_or(first, |all| all.into_boxed_slice().into());
    Ok(Whole {
        bytes,
        broken,
        _place: place,
    })
}

/// Reads the body of a refusal; nothing if it cannot be read, since the status says enough.
pub(super) async fn refusal<B>(body: B) -> Option<Bytes>
where
    B: Body<Data = Bytes, Error: std::error::Error + 'static> + Unpin,
{
    let never_long = LongMessages::default();
    let words = whole(body, MAX_REFUSAL, &never_long);
    let words = tokio::time::timeout(REFUSAL_WAIT, words).await.ok()?.ok()?;
    Some(words.bytes)
}

pub(super) fn broken(error: &(dyn std::error::Error + 'static)) -> RequestError {
    RequestError::lost(format!("the answer broke off: {}", innermost(error)))
}

/// Returns the innermost cause: the error of the operating system.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{StreamExt, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::super::events::EventReader;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_whose_words_never_come_is_not_waited_for() {
        let never = stream::pending::<Result<Frame<Bytes>, std::io::Error>>();
        let body = StreamBody::new(never);
        let words = tokio::time::timeout(REFUSAL_WAIT * 2, refusal(body)).await;
        assert_eq!(words, Ok(None));
    }

    #[tokio::test]
    async fn a_third_long_message_is_read_up_to_a_short_one_at_first() {
        const PIECE: usize = 16 * 1024;
        const LONG: usize = 4 * SHORT;
        for is_event in [false, true] {
            let long = LongMessages::default();
            let mut others = [None, None];
            for place in &mut others {
                long.admit(SHORT + 1, place).await;
            }
            let read = Arc::new(AtomicUsize::new(0));
            let counter = read.clone();
            let piece = move || {
                counter.fetch_add(PIECE, Ordering::Relaxed);
                Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![b':'; PIECE])))
            };
            let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"data: ")))]);
            let pieces = stream::repeat_with(piece).take(LONG / PIECE);
            let body = StreamBody::new(first.chain(pieces));
            let reading = tokio::spawn(async move {
                match is_event {
                    true => drop(EventReader::new(body, 2 * LONG, long).next().await),
                    false => drop(whole(body, 2 * LONG, &long).await),
                }
            });
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            assert!(read.load(Ordering::Relaxed) <= SHORT + PIECE);
            drop(others);
            reading.await.unwrap();
            assert_eq!(read.load(Ordering::Relaxed), LONG);
        }
    }
}
