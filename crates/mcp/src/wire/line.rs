//! The framing of pipes: one message per line.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::skim::{Skim, Skipped};
use super::{LONG_SIZE, LongMessages, SHORT};

/// The longest line accepted by default: 16 MiB.
pub const DEFAULT_MAX_LINE: usize = 16 * 1024 * 1024;

/// How many bytes are reserved before each read.
const READ_SIZE: usize = 16 * 1024;

/// How long a long line may take once it is read: others of the server wait for it.
const LONGEST: Duration = Duration::from_secs(60);

/// Reads lines, none of them longer than a limit.
///
/// Empty lines are passed over, a closing `\r` is cut off. [`next`](Self::next) may be dropped and
/// called again: what was read is kept.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    inner: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line break.
    searched: usize,
    max_line: usize,
    /// An overlong line is being passed over.
    skipping: Option<Skim>,
    /// Bounds how many long lines are in memory, those of other readers included.
    long: LongMessages,
    /// The permit of a long line, and when it has to be complete.
    place: Option<OwnedSemaphorePermit>,
    due: Option<Instant>,
}

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// A line was longer than the limit. It was skipped, and the next call goes on behind it.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
        /// What the line was about, if it was a message.
        skipped: Skipped,
    },
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `inner`, with lines of at most `max_line` bytes.
    pub(crate) fn new(inner: R, max_line: usize) -> Self {
        Self {
            inner,
            buffer: BytesMut::new(),
            searched: 0,
            max_line,
            skipping: None,
            long: LongMessages::default(),
            place: None,
            due: None,
        }
    }

    /// Shares the bound on long lines with other readers.
    pub(crate) fn with_long(self, long: LongMessages) -> Self {
        Self { long, ..self }
    }

    /// Returns the next line, without its line break; nothing at the end of the input.
    ///
    /// A last line without a line break counts.
    ///
    /// # Errors
    ///
    /// [`LineError::Io`] if reading fails or a long line does not end within a minute,
    /// [`LineError::TooLong`] if the line breaks the limit: at its end, since what it was about may
    /// stand there. It takes no more memory than the limit.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            let received = self.buffer.len();
            if let Some(line) = self.take_line()? {
                return Ok(Some(line));
            }
            if self.buffer.len() < received {
                // lines without a message, which may come without an end
                tokio::task::yield_now().await;
            }
            if self.read().await? == 0 {
                let rest = std::mem::take(&mut self.buffer);
                self.searched = 0;
                return match self.skipping.take() {
                    Some(skim) => Err(self.too_long(skim)),
                    None => Ok(trimmed(&rest)),
                };
            }
        }
    }

    /// Reads more of a line. A long one needs a permit, and has to be complete in time.
    async fn read(&mut self) -> io::Result<usize> {
        self.long.admit(self.buffer.len(), &mut self.place).await;
        if self.place.is_none() {
            self.buffer.reserve(READ_SIZE);
            return self.inner.read_buf(&mut self.buffer).await;
        }
        let due = *self.due.get_or_insert_with(|| Instant::now() + LONGEST);
        // not doubled: a copy of a long line would double what it takes
        let usual = LONG_SIZE.min(self.max_line) + READ_SIZE;
        let more = usual.saturating_sub(self.buffer.len()).max(READ_SIZE);
        self.buffer.reserve(more);
        let read = self.inner.read_buf(&mut self.buffer);
        timeout_at(due, read).await.unwrap_or_else(|_| {
            let text = format!("a message of over {SHORT} bytes did not end within {LONGEST:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
    }

    /// Lets others read a long line.
    fn release(&mut self) {
        self.place = None;
        self.due = None;
    }

    fn take_line(&mut self) -> Result<Option<Bytes>, LineError> {
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let at = self.searched + at;
            self.searched = 0;
            let line = &self.buffer[..at];
            if self.skipping.is_some() || line.len() > self.max_line {
                let mut skim = self.skipping.take().unwrap_or_default();
                skim.feed(line);
                self.pass(at + 1);
                return Err(self.too_long(skim));
            }
            // copied: a slice would keep all of the buffer for as long as the message is kept
            let line = trimmed(line);
            self.pass(at + 1);
            if line.is_some() {
                return Ok(line);
            }
        }
        if self.skipping.is_some() || self.buffer.len() > self.max_line {
            // what is skipped needs no buffer of the limit's size
            let passed = std::mem::take(&mut self.buffer);
            self.release();
            self.skipping.get_or_insert_default().feed(&passed);
        }
        self.searched = self.buffer.len();
        Ok(None)
    }

    /// Drops the beginning of the buffer, and the space that a long line took.
    fn pass(&mut self, bytes: usize) {
        self.buffer.advance(bytes);
        self.release();
        if self.buffer.is_empty() && bytes > READ_SIZE {
            self.buffer = BytesMut::new();
        }
    }

    fn too_long(&self, skim: Skim) -> LineError {
        LineError::TooLong {
            limit: self.max_line,
            skipped: skim.found,
        }
    }
}

fn trimmed(line: &[u8]) -> Option<Bytes> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_empty = line.iter().all(u8::is_ascii_whitespace);
    (!is_empty).then(|| Bytes::copy_from_slice(line))
}

/// Makes a message fit one line: raw line breaks become spaces.
///
/// In valid JSON a raw line break is white space between tokens, never part of a string, so the
/// message says the same.
pub(crate) fn flatten(message: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', &message[from..]) {
        message[from + at] = b' ';
        from += at + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn read_all(chunks: &[&[u8]], max_line: usize) -> Vec<Result<String, String>> {
        let chunks = chunks
            .iter()
            .map(|chunk| Ok::<_, io::Error>(Bytes::copy_from_slice(chunk)));
        let chunks: Vec<_> = chunks.collect();
        let reader = tokio_util::io::StreamReader::new(futures_util::stream::iter(chunks));
        let mut reader = LineReader::new(reader, max_line);
        let mut lines = Vec::new();
        loop {
            lines.push(match reader.next().await {
                Ok(Some(line)) => Ok(String::from_utf8(line.to_vec()).unwrap()),
                Ok(None) => return lines,
                Err(error) => Err(error.to_string()),
            });
        }
    }

    #[tokio::test]
    async fn an_overlong_line_is_skipped_and_the_next_one_is_read() {
        let too_long = || Err("a message is longer than 4 bytes".to_owned());
        let read = |text: &str| Ok(text.to_owned());
        let lines = read_all(&[b"ab\r\n\n0123", b"456789", b"x\ncd\n", b"rest"], 4).await;
        assert_eq!(lines, [read("ab"), too_long(), read("cd"), read("rest")]);
        let lines = read_all(&[b"ab\n0123", b"456789"], 4).await;
        assert_eq!(lines, [read("ab"), too_long()]);
    }

    #[tokio::test]
    async fn other_tasks_run_while_empty_lines_come_without_a_pause() {
        let text = "\n".repeat(4 * READ_SIZE) + "{}\n";
        let mut reader = LineReader::new(text.as_bytes(), 4);
        let mut reading = Box::pin(reader.next());
        assert!(futures_util::poll!(&mut reading).is_pending());
        assert_eq!(reading.await.unwrap().unwrap(), "{}");
    }

    #[tokio::test(start_paused = true)]
    async fn two_long_lines_are_read_at_a_time_and_endless_ones_are_given_up() {
        let long = LongMessages::default();
        let mut open = Vec::new();
        for whole in [true, true, false] {
            let (stalled, ours) = tokio::io::duplex(1);
            let never = AsyncReadExt::chain(&[b'x'; 4 * SHORT][..], ours);
            let mut reader = LineReader::new(never, 8 * SHORT).with_long(long.clone());
            assert!(futures_util::poll!(Box::pin(reader.next())).is_pending());
            let held = reader.buffer.len();
            assert_eq!(held == 4 * SHORT, whole, "{held}");
            assert!(whole || held <= 2 * SHORT, "{held}");
            open.push((stalled, reader));
        }
        let error = open[0].1.next().await.unwrap_err().to_string();
        assert!(error.contains("did not end within 60s"), "{error}");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            lines in prop::collection::vec("[a-z]{1,9}", 0..6),
            cut in 1_usize..7,
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(read_all(&chunks, 9));
            let read: Result<Vec<String>, String> = read.into_iter().collect();
            prop_assert_eq!(read, Ok(lines));
        }
    }
}
