//! Reads event streams, none of whose events is longer than a limit.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::OwnedSemaphorePermit;

use super::body::{append, broken};
use super::connect::BoxError;
use super::resume::Resume;
use crate::client::answer::RequestError;
use crate::wire::{LONG_SIZE, LongMessages};

/// How many bytes are parsed before other tasks run.
const MAX_PARSED: usize = 64 * 1024;

/// What a line counts for at least: thousands of short ones take as long as many bytes.
const LEAST_LINE: usize = 256;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The messages of an event stream.
pub(super) struct EventReader {
    body: UnsyncBoxBody<Bytes, BoxError>,
    limit: usize,
    long: LongMessages,
    /// Its place among the long answers, until the event is handed over.
    place: Option<OwnedSemaphorePermit>,
    /// Received bytes that are not parsed yet.
    chunk: Bytes,
    /// Bytes parsed since other tasks could run.
    parsed: usize,
    /// Whether the last line ended with a carriage return: a line feed then belongs to that end.
    after_return: bool,
    is_first_line: bool,
    /// The data of the event so far, with a line feed after each line; then the line without an
    /// end.
    event: Vec<u8>,
    /// Where that line begins.
    line: usize,
    /// Bytes read since the last event with data: comments are endless as well.
    read: usize,
    /// The id of the event so far.
    id: Option<String>,
    /// Whether the event so far is named `endpoint`.
    names_endpoint: bool,
    /// Whether the event that was handed over is.
    pub(super) is_endpoint: bool,
    pub(super) resume: Resume,
}

impl EventReader {
    pub(super) fn new<B>(body: B, limit: usize, long: LongMessages) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self {
            body: body.map_err(Into::into).boxed_unsync(),
            limit,
            long,
            place: None,
            chunk: Bytes::new(),
            parsed: 0,
            after_return: false,
            is_first_line: true,
            event: Vec::new(),
            line: 0,
            read: 0,
            id: None,
            names_endpoint: false,
            is_endpoint: false,
            resume: Resume::default(),
        }
    }

    /// Returns the data of the next event that has any; nothing at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, RequestError> {
        self.place = None;
        loop {
            // a chunk may have many, and a server that always has more must not occupy a thread
            tokio::task::coop::consume_budget().await;
            while self.take_line()? {
                if let Some(data) = self.end_line()? {
                    return Ok(Some(data));
                }
                self.pause().await;
            }
            self.pause().await;
            self.long.admit(self.event.len(), &mut self.place).await;
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(&*error)),
                // others are trailers
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
            }
        }
    }

    /// Lets other tasks run if enough was parsed since they could.
    async fn pause(&mut self) {
        if self.parsed >= MAX_PARSED {
            self.parsed = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Takes a line out of the chunk, or its beginning. Returns `true` if the line is complete.
    fn take_line(&mut self) -> Result<bool, RequestError> {
        if self.after_return && !self.chunk.is_empty() {
            self.after_return = false;
            if self.chunk.starts_with(b"\n") {
                self.chunk.advance(1);
            }
        }
        let end = memchr::memchr2(b'\n', b'\r', &self.chunk);
        let piece = self.chunk.split_to(end.unwrap_or(self.chunk.len()));
        self.read += piece.len() + usize::from(end.is_some());
        self.parsed += piece.len().max(LEAST_LINE);
        if self.read > self.limit {
            let is_one_event = self.event.len() + piece.len() > self.read / 2;
            return Err(match is_one_event {
                true => RequestError::too_large(self.limit),
                false => RequestError::no_answer_within(self.limit),
            });
        }
        append(&mut self.event, &piece, LONG_SIZE, self.limit);
        if end.is_some() {
            self.after_return = self.chunk.starts_with(b"\r");
            self.chunk.advance(1);
        }
        Ok(end.is_some())
    }

    /// Reads the line that has just ended. Returns the data of the event that it ends.
    fn end_line(&mut self) -> Result<Option<Bytes>, RequestError> {
        if std::mem::take(&mut self.is_first_line) && self.event.starts_with(BYTE_ORDER_MARK) {
            self.event.drain(..BYTE_ORDER_MARK.len());
        }
        let line = &self.event[self.line..];
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = line.split_at(memchr::memchr(b':', line).unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                let begin = self.event.len() - value.len();
                self.event.drain(self.line..begin);
                self.event.push(b'\n');
                self.line = self.event.len();
            }
            b"event" => self.names_endpoint = value == b"endpoint",
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let wait = std::str::from_utf8(value).ok();
                let wait = wait.and_then(|wait| wait.trim_ascii().parse().ok());
                self.resume.wait = wait.map(Duration::from_millis).or(self.resume.wait);
            }
            // the specification has any other line ignored
            _ => {}
        }
        self.event.truncate(self.line);
        Ok(None)
    }

    fn end_event(&mut self) -> Result<Option<Bytes>, RequestError> {
        if let Some(id) = self.id.take() {
            self.resume.pass(id);
        }
        self.is_endpoint = std::mem::take(&mut self.names_endpoint);
        self.line = 0;
        self.event.pop(); // the line feed after the last line
        // a priming event has an id and no data
        if self.event.is_empty() {
            return Ok(None);
        }
        self.read = 0;
        let data = std::mem::take(&mut self.event);
        match std::str::from_utf8(&data) {
            Ok(_) => Ok(Some(data.into_boxed_slice().into())),
            Err(error) => {
                self.resume.forget(); // resumed, it would not have this event
                Err(broken(&error))
            }
        }
    }
}

/// Reads a stream that comes in these pieces.
#[cfg(any(test, fuzzing))]
fn reader(
    pieces: impl futures_util::Stream<Item = Bytes> + Send + 'static,
    limit: usize,
) -> EventReader {
    use futures_util::StreamExt;

    let frames =
        pieces.map(|piece| Ok::<_, std::convert::Infallible>(http_body::Frame::data(piece)));
    let body = http_body_util::StreamBody::new(frames);
    EventReader::new(body, limit, LongMessages::default())
}

/// Returns the messages of a stream that comes in these pieces, and why there are no more.
#[cfg(fuzzing)]
pub(crate) async fn events(pieces: Vec<Bytes>, limit: usize) -> (Vec<Bytes>, Option<String>) {
    let mut reader = reader(futures_util::stream::iter(pieces), limit);
    let mut messages = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return (messages, None),
            Err(error) => return (messages, Some(format!("{error:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// Reads a stream in pieces of each size.
    fn in_pieces(text: &[u8]) -> impl Iterator<Item = (usize, EventReader)> {
        let text = Bytes::copy_from_slice(text);
        (1..=text.len()).map(move |size| {
            let pieces: Vec<_> = text.chunks(size).map(Bytes::copy_from_slice).collect();
            (size, reader(stream::iter(pieces), 1024))
        })
    }

    #[tokio::test]
    async fn other_tasks_run_between_and_within_chunks_that_say_nothing() {
        let short_lines = ":\n".repeat(MAX_PARSED / LEAST_LINE);
        for (chunk, times) in [(":\n".repeat(MAX_PARSED / 2), 3), (short_lines, 1)] {
            let data = Bytes::from_static(b"data: x\n\n");
            let chunks = vec![Bytes::from(chunk); times].into_iter().chain([data]);
            let mut reader = reader(stream::iter(chunks), 4 * MAX_PARSED);
            let mut reading = Box::pin(reader.next());
            assert!(futures_util::poll!(&mut reading).is_pending(), "{times}");
            assert_eq!(reading.await.unwrap().unwrap(), "x");
        }
    }

    #[tokio::test]
    async fn an_event_before_a_line_that_is_no_text_is_read() {
        for text in [
            &b"data: whole\n\ndata: \xff\n\n"[..],
            b"data: whole\r\rdata: \xff\r\r",
        ] {
            for (size, mut events) in in_pieces(text) {
                assert_eq!(events.next().await.unwrap().unwrap(), "whole", "{size}");
                assert!(events.next().await.is_err(), "{size}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_without_meaning_is_ignored() {
        let lines = "data: {|colour: red|no colon|retry: soon|id: 1|id: 2|data: }||";
        for end in ["\n", "\r", "\r\n"] {
            for (size, mut events) in in_pieces(lines.replace('|', end).as_bytes()) {
                let event = events.next().await.unwrap();
                assert_eq!(event.unwrap(), "{\n}", "{end:?} {size}");
                assert_eq!(events.next().await.unwrap(), None);
            }
        }
    }
}
