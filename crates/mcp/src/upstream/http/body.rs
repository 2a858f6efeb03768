//! Reads the bodies of answers, none of them longer than a limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use http_body::Body;
use http_body_util::{BodyDataStream, BodyExt};
use sse_stream::SseStream;

use crate::upstream::answer::RequestError;

/// How much of a body is read that only explains a refusal.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long the words of a refusal may take: its status is known already.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

/// What was read of a body.
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    /// Why there is no more of it, where it did not end in good order. A message may be complete all
    /// the same: it is the server's last chunk that is missing, or white space.
    pub(super) broken: Option<RequestError>,
}

/// Reads a whole body. The usual one arrives in one piece and is not copied.
///
/// # Errors
///
/// One longer than the limit.
pub(super) async fn whole<B>(mut body: B, limit: usize) -> Result<Whole, RequestError>
where
    B: Body<Data = Bytes, Error: std::error::Error + 'static> + Unpin,
{
    let mut first = Bytes::new();
    let mut rest: Option<Vec<u8>> = None;
    let broken = loop {
        let frame = match body.frame().await {
            Some(Ok(frame)) => frame,
            None => break None,
            Some(Err(error)) => break Some(broken(&error)),
        };
        let Ok(chunk) = frame.into_data() else {
            continue; // trailers
        };
        if first.len() + rest.as_ref().map_or(0, Vec::len) + chunk.len() > limit {
            return Err(RequestError::too_large(limit));
        }
        match &mut rest {
            Some(rest) => rest.extend_from_slice(&chunk),
            None if first.is_empty() => first = chunk,
            None => {
                let mut all = Vec::from(std::mem::take(&mut first));
                all.extend_from_slice(&chunk);
                rest = Some(all);
            }
        }
    };
    // the room that the last growth made is given back: the answer may be kept for long
    let bytes = rest.map_or(first, |all| all.into_boxed_slice().into());
    Ok(Whole { bytes, broken })
}

/// Reads the body of a refusal; nothing if it cannot be read, since the status says enough.
pub(super) async fn refusal<B>(body: B) -> Option<Bytes>
where
    B: Body<Data = Bytes, Error: std::error::Error + 'static> + Unpin,
{
    let words = whole(body, MAX_REFUSAL);
    let words = tokio::time::timeout(REFUSAL_WAIT, words).await.ok()?.ok()?;
    Some(words.bytes)
}

type Events = SseStream<
    sse_stream::ByteStreamBody<Pin<Box<dyn Stream<Item = Result<Bytes, ReadError>> + Send>>, Bytes>,
>;

/// The messages of an event stream.
pub(super) struct EventReader {
    events: Pin<Box<Events>>,
    /// Bytes read since the last event with data: comments are endless as well.
    pending: Arc<AtomicUsize>,
    limit: usize,
    pub(super) resume: Resume,
}

/// How a stream can be resumed.
#[derive(Debug, Clone, Default)]
pub(super) struct Resume {
    /// The id of the last event that has one.
    pub(super) after: Option<String>,
    /// How long the server wants a client to wait first.
    pub(super) wait: Option<Duration>,
}

#[derive(Debug)]
enum ReadError {
    Broken(Box<dyn std::error::Error + Send + Sync>),
    TooLong(usize),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broken(error) => write!(f, "{error}"),
            Self::TooLong(limit) => write!(f, "an event is longer than {limit} bytes"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The lines of a chunk, one by one, each with a line feed at its end. The parser gives up the rest of
/// what it takes in after a line that it refuses, so it gets no more than that line.
struct Lines(Option<Result<Bytes, ReadError>>);

impl Iterator for Lines {
    type Item = Result<Bytes, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(Ok(chunk)) = &mut self.0 else {
            return self.0.take();
        };
        let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
            return self.0.take();
        };
        let mut line = chunk.split_to(end + 1);
        if line.ends_with(b"\r") {
            if chunk.starts_with(b"\n") {
                chunk.advance(1);
            }
            line = Bytes::from([&line[..end], b"\n"].concat());
        }
        if chunk.is_empty() {
            self.0 = None;
        }
        Some(Ok(line))
    }
}

impl EventReader {
    pub(super) fn new<B>(body: B, limit: usize) -> Self
    where
        B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let pending = Arc::new(AtomicUsize::new(0));
        let counter = pending.clone();
        let chunks = BodyDataStream::new(body).then(async |chunk| {
            // a server that always has more must not keep a thread to itself
            tokio::task::coop::consume_budget().await;
            chunk.map_err(|error| ReadError::Broken(error.into()))
        });
        let mut after_return = false;
        let lines = chunks.flat_map(move |mut chunk| {
            if let Ok(chunk) = &mut chunk {
                let ends_so = chunk.ends_with(b"\r");
                if after_return && chunk.starts_with(b"\n") {
                    chunk.advance(1); // the other half of the end of a line
                }
                after_return = ends_so;
            }
            futures_util::stream::iter(Lines(Some(chunk)))
        });
        let bytes = lines.map(move |line| {
            let line = line?;
            if counter.fetch_add(line.len(), Ordering::Relaxed) + line.len() > limit {
                return Err(ReadError::TooLong(limit));
            }
            Ok(line)
        });
        let bytes: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(bytes);
        Self {
            events: Box::pin(SseStream::from_bytes_stream(bytes)),
            pending,
            limit,
            resume: Resume::default(),
        }
    }

    /// Returns the data of the next event that has any; nothing at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, RequestError> {
        loop {
            // there may be many in one chunk
            tokio::task::coop::consume_budget().await;
            match self.events.next().await {
                None => return Ok(None),
                Some(Err(_)) if self.pending.load(Ordering::Relaxed) > self.limit => {
                    return Err(RequestError::too_large(self.limit));
                }
                Some(Err(sse_stream::Error::Body(error))) => return Err(broken(&*error)),
                Some(Err(error @ sse_stream::Error::Utf8Parse(_))) => return Err(broken(&error)),
                // the specification has such a line ignored
                Some(Err(_)) => {}
                Some(Ok(event)) => {
                    let retry = event.retry.map(Duration::from_millis);
                    self.resume.wait = retry.or(self.resume.wait);
                    if event.id.is_some() {
                        self.resume.after = event.id;
                    }
                    // a priming event has an id and no data
                    if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                        self.pending.store(0, Ordering::Relaxed);
                        return Ok(Some(Bytes::from(data)));
                    }
                }
            }
        }
    }
}

/// Returns the messages of a stream that comes in these pieces, and why there are no more.
#[cfg(fuzzing)]
pub(crate) async fn events(pieces: Vec<Bytes>, limit: usize) -> (Vec<Bytes>, Option<String>) {
    let pieces = pieces
        .into_iter()
        .map(|piece| Ok(http_body::Frame::data(piece)));
    let pieces =
        futures_util::stream::iter(pieces.map(|piece: Result<_, std::convert::Infallible>| piece));
    let mut reader = EventReader::new(http_body_util::StreamBody::new(pieces), limit);
    let mut messages = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return (messages, None),
            Err(error) => return (messages, Some(format!("{error:?}"))),
        }
    }
}

fn broken(error: &(dyn std::error::Error + 'static)) -> RequestError {
    RequestError::lost(format!("the answer broke off: {}", innermost(error)))
}

/// Returns the cause at the bottom: what the operating system said, not who passed it on.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_whose_words_never_come_is_not_waited_for() {
        let never = futures_util::stream::pending::<Result<Frame<Bytes>, std::io::Error>>();
        let body = StreamBody::new(never);
        let words = tokio::time::timeout(REFUSAL_WAIT * 2, refusal(body)).await;
        assert_eq!(words, Ok(None));
    }

    #[tokio::test]
    async fn an_event_before_a_line_that_is_no_text_is_read() {
        for (stream, size) in [
            &b"data: whole\n\ndata: \xff\n\n"[..],
            b"data: whole\r\rdata: \xff\r\r",
        ]
        .into_iter()
        .flat_map(|stream| (1..=stream.len()).map(move |size| (stream, size)))
        {
            let pieces = stream
                .chunks(size)
                .map(|piece| Ok::<_, std::io::Error>(Frame::data(Bytes::copy_from_slice(piece))));
            let body = StreamBody::new(futures_util::stream::iter(pieces));
            let mut events = EventReader::new(body, 1024);
            assert_eq!(events.next().await.unwrap().unwrap(), "whole", "{size}");
            assert!(events.next().await.is_err(), "{size}");
        }
    }

    #[tokio::test]
    async fn a_line_without_meaning_is_ignored() {
        let lines = [
            "data: {",
            "colour: red",
            "no colon",
            "retry: soon",
            "id: 1",
            "id: 2",
            "data: }",
            "",
        ];
        for end in ["\n", "\r", "\r\n"] {
            let stream = Bytes::from(lines.join(end) + end);
            for size in 1..=stream.len() {
                let mut left = stream.clone();
                let pieces = std::iter::from_fn(move || {
                    let piece = left.split_to(size.min(left.len()));
                    (!piece.is_empty()).then_some(Ok::<_, std::io::Error>(Frame::data(piece)))
                });
                let body = StreamBody::new(futures_util::stream::iter(pieces));
                let mut events = EventReader::new(body, 1024);
                let event = events.next().await.unwrap();
                assert_eq!(event.unwrap(), "{\n}", "{stream:?} {size}");
                assert_eq!(events.next().await.unwrap(), None);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_brings_no_data_ends_at_the_limit() {
        for said in [": there\n\n", ": there\n", "data:\n\n", "id: 1\n\n", "\n"] {
            let said = futures_util::stream::repeat_with(move || {
                Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(said.as_bytes())))
            });
            let mut events = EventReader::new(StreamBody::new(said.take(100_000)), 10_000);
            let ended = events.next().await;
            assert!(matches!(ended, Err(RequestError::Failed(_))), "{ended:?}");
        }
    }
}
