//! Lines put together for one write, and how much of it was written.

use std::ops::Range;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::waiters::Written;

/// Lines are put together into one write up to this size.
const BATCH_BYTES: usize = 64 * 1024;

/// One line to write; a request's is passed over if no caller waits for it any more.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) request: Option<u64>,
    /// With the line break.
    pub(super) bytes: Vec<u8>,
}

/// Lines put together for one write.
///
/// The count lives here and not in the future that writes, so that it is known when that future was
/// dropped in the middle.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Each request, with its place up to its last bracket.
    ///
    /// A text that ends before that is not JSON, and no server runs what it cannot parse. The line
    /// break after it does not count: a server that sees its input end may take the last line
    /// without one.
    requests: Vec<(u64, Range<usize>)>,
    written: usize,
}

impl Batch {
    pub(super) fn push(&mut self, line: Line) {
        if let Some(request) = line.request {
            let start = self.bytes.len();
            let end = start + line.bytes.trim_ascii_end().len();
            self.requests.push((request, start..end));
        }
        if self.bytes.is_empty() {
            self.bytes = line.bytes; // the usual case: one line, not copied
        } else {
            self.bytes.extend_from_slice(&line.bytes);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }

    /// Writes all.
    ///
    /// A write that fails, or is dropped while it waits, has written nothing: the writer guarantees
    /// it.
    pub(super) async fn write_to<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        while self.written < self.bytes.len() {
            let rest = self.bytes.get(self.written..).unwrap_or_default();
            match writer.write(rest).await? {
                0 => return Err(std::io::ErrorKind::WriteZero.into()),
                more => self.written += more,
            }
        }
        writer.flush().await
    }

    /// Returns the requests that were not written to their end, if nothing more is written.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = (u64, Written)> {
        let unfinished = self.requests.iter();
        let unfinished = unfinished.filter(|(_, place)| self.written < place.end);
        unfinished.map(|(request, place)| match self.written <= place.start {
            true => (*request, Written::Nothing),
            false => (*request, Written::Part),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_unfinished_until_its_last_bracket_is_written() {
        use Written::{Nothing, Part};

        let both = [(1, Nothing), (2, Nothing)];
        let (begun, one, last) = ([(1, Part), (2, Nothing)], [(2, Nothing)], [(2, Part)]);
        // without the line break, all of the first one is written
        let cases = [&both[..], &begun, &one, &one, &last, &[], &[]];
        for (taken, unfinished) in cases.into_iter().enumerate() {
            let mut batch = Batch::default();
            for request in [1, 2] {
                batch.push(Line {
                    request: Some(request),
                    bytes: b"{}\n".to_vec(),
                });
            }
            if taken > 0 {
                let (mut ours, _theirs) = tokio::io::duplex(taken);
                // the pipe is full in the middle, and the write is given up
                tokio::select! {
                    biased;
                    _ = batch.write_to(&mut ours) => {}
                    () = std::future::ready(()) => {}
                }
            }
            let found: Vec<_> = batch.unfinished().collect();
            assert_eq!(found, unfinished, "{taken} bytes taken");
        }
    }
}
