//! Reads recordings line by line, compressed or not.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::ReplayError;

/// The lines of a file, or of standard input for `-`. Data with a gzip header is decompressed,
/// whatever the name of the file.
pub(crate) struct Lines {
    file: String,
    reader: Box<dyn BufRead>,
    longest: usize,
    line: Vec<u8>,
    number: u64,
    /// The last line is too long and was not read to its end.
    cut: bool,
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A UTF-8 byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";
const BUFFER: usize = 1 << 16;

impl Lines {
    /// Opens a recording. A line longer than `longest` bytes is an error, so that a file of another
    /// kind does not fill the memory.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Open`] if the file cannot be opened or its first bytes cannot be read.
    pub(crate) fn open(path: &Path, longest: usize) -> Result<Self, ReplayError> {
        if path.as_os_str() == "-" {
            return Self::from_reader("standard input", io::stdin(), longest);
        }
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::from_reader(&name, file, longest),
            Err(source) => Err(ReplayError::Open { file: name, source }),
        }
    }

    /// Reads from a reader; errors mention `name`.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Open`] if the first bytes cannot be read.
    pub(crate) fn from_reader(
        name: &str,
        mut reader: impl Read + 'static,
        longest: usize,
    ) -> Result<Self, ReplayError> {
        let mut start = Vec::new();
        let limit = GZIP.len() as u64;
        if let Err(source) = reader.by_ref().take(limit).read_to_end(&mut start) {
            let file = name.to_owned();
            return Err(ReplayError::Open { file, source });
        }
        let packed = start == GZIP;
        let whole = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(reader));
        let reader: Box<dyn BufRead> = if packed {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self {
            file: name.to_owned(),
            reader,
            longest,
            line: Vec::new(),
            number: 0,
            cut: false,
        })
    }

    /// Returns the next line without its end (`\n` or `\r\n`), or `None` after the last. A byte
    /// order mark before the first line is skipped. A line that is too long is an error, and the
    /// next call returns the line after it.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Read`] if the file cannot be read or decompressed, [`ReplayError::Line`] if
    /// the line is too long.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, ReplayError> {
        if let Err(source) = self.read_line() {
            return Err(ReplayError::Read {
                file: self.file.clone(),
                line: self.number,
                source,
            });
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        if self.number == 1 && self.line.starts_with(BOM) {
            self.line.drain(..BOM.len());
        }
        for end in [b'\n', b'\r'] {
            if self.line.last() == Some(&end) {
                self.line.pop();
            }
        }
        if self.line.len() > self.longest {
            return Err(self.fault(format!("longer than {} bytes", self.longest)));
        }
        Ok(Some(&self.line))
    }

    fn read_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.cut) {
            // skip the rest of the line before
            self.reader.skip_until(b'\n')?;
        }
        self.line.clear();
        self.number += 1;
        // one byte too many, a line end of two bytes, and a byte order mark
        let limit = (self.longest as u64).saturating_add(3 + BOM.len() as u64);
        let read = self
            .reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.line)?;
        self.cut = read as u64 == limit && self.line.last() != Some(&b'\n');
        Ok(())
    }

    /// Returns an error about the last line.
    pub(crate) fn fault(&self, problem: impl fmt::Display) -> ReplayError {
        ReplayError::Line {
            file: self.file.clone(),
            line: self.number,
            problem: problem.to_string(),
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("file", &self.file)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn all(bytes: Vec<u8>, longest: usize) -> Result<Vec<String>, ReplayError> {
        let mut lines = Lines::from_reader("x.keys", Cursor::new(bytes), longest)?;
        let mut found = Vec::new();
        while let Some(line) = lines.next_line()? {
            found.push(String::from_utf8_lossy(line).into_owned());
        }
        Ok(found)
    }

    #[test]
    fn lines_are_the_same_compressed_or_not() {
        for text in ["", "a", "a\n", "a\nb", "a\r\n\nb\n"] {
            let plain = all(text.into(), 10).unwrap();
            let want: Vec<_> = text.lines().map(str::to_owned).collect();
            assert_eq!(plain, want, "{text:?}");
            assert_eq!(all(packed(text.as_bytes()), 10).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn concatenated_gzip_members_are_one_file() {
        let both = [packed(b"a\nb"), packed(b"c\nd\n")].concat();
        assert_eq!(all(both, 10).unwrap(), ["a", "bc", "d"]);
    }

    #[test]
    fn a_line_over_the_limit_is_an_error_with_its_number() {
        assert_eq!(all("1234567890\r\n".into(), 10).unwrap(), ["1234567890"]);
        for ending in ["", "\n", "\r\n", "and more than the buffer takes"] {
            let error = all(format!("a\n12345678901{ending}").into(), 10).unwrap_err();
            assert_eq!(error.to_string(), "x.keys:2: longer than 10 bytes");
        }
    }

    #[test]
    fn truncated_gzip_is_an_error() {
        let mut bytes = packed(&b"a\n".repeat(100));
        bytes.truncate(bytes.len() - 9);
        let error = all(bytes, 10).unwrap_err();
        assert!(matches!(error, ReplayError::Read { .. }), "{error}");
    }
}
