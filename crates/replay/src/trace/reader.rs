//! Reading a recording call by call: as much in memory as the longest line.

use std::io::Read;
use std::path::Path;

use super::RecordedCall;
use crate::{Lines, ReplayError};

/// The calls of a recording, in the order of its lines. Blank lines are skipped.
///
/// After a bad line reading goes on; after a failure to read at all it does not.
#[derive(Debug)]
pub struct Calls {
    lines: Lines,
    broken: bool,
}

/// A line may not be longer: what has no line ends is no recording.
const LONGEST_LINE: usize = 64 << 20;

impl Calls {
    /// Opens a recording, compressed or not; `-` is standard input.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Open`] if the file cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        Ok(Self::of(Lines::open(path, LONGEST_LINE)?))
    }

    /// Reads from elsewhere; `name` stands in errors.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Open`] if the first bytes cannot be read.
    pub fn from_reader(name: &str, reader: impl Read + 'static) -> Result<Self, ReplayError> {
        Ok(Self::of(Lines::from_reader(name, reader, LONGEST_LINE)?))
    }

    const fn of(lines: Lines) -> Self {
        Self {
            lines,
            broken: false,
        }
    }

    /// Reads the next line that is not blank; nothing at the end.
    fn advance(&mut self) -> Result<Option<RecordedCall>, ReplayError> {
        loop {
            let Some(line) = self.lines.next_line()? else {
                return Ok(None);
            };
            match read(line) {
                None => {}
                Some(Ok(call)) => return Ok(Some(call)),
                Some(Err(reason)) => return Err(self.lines.fault(reason)),
            }
        }
    }
}

fn read(line: &[u8]) -> Option<Result<RecordedCall, super::BadLine>> {
    let line = line.trim_ascii();
    (!line.is_empty()).then(|| RecordedCall::from_line(line))
}

impl Iterator for Calls {
    type Item = Result<RecordedCall, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let next = self.advance();
        self.broken = matches!(&next, Err(error) if !matches!(error, ReplayError::Line { .. }));
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn said(text: impl AsRef<[u8]>) -> Vec<String> {
        Calls::from_reader("f", Cursor::new(text.as_ref().to_vec()))
            .unwrap()
            .map(|call| match call {
                Ok(call) => call.tool.to_string(),
                Err(error) => error.to_string(),
            })
            .collect()
    }

    fn gz(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_are_read_compressed_or_not_and_in_pieces() {
        let text = "\u{feff}{\"tool\":\"a\"}\r\n\n  \n{\"tool\":\"b\",\"new\":[1]}";
        assert_eq!(said(text), ["a", "b"]);
        assert_eq!(said(gz(text)), ["a", "b"]);
        let pieces = [gz("{\"tool\":\"a\"}\n{\"tool\""), gz(":\"b\"}\n")].concat();
        assert_eq!(said(pieces), ["a", "b"]);
        assert_eq!(said(""), [""; 0]);
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_is_read() {
        let text = b"{\"tool\":\"a\"}\n[1]\n{\"tool\":\"b\",\"seq\":\"x\"}\n{\"x\":1}\n{\"tool\":\"\"}\n\
            {\"tool\":\"b\",\"result_sha1\":\"12\"}\n{\"tool\":\"b\",\"at_ms\":-1}\n{\"tool\":\"b\",\n\
            {\"tool\":\"b\",\"tool\":\"c\"}\n{\"tool\":\"b\",\"write\":true,\"effect\":\"read_only\"}\n\
            {\"tool\":\"\xff\"}\n{\"tool\":\"c\"}";
        let said = said(text);
        let want = [
            ("a", ""),
            ("f:2: is no JSON object", ""),
            ("f:3: `seq`", "\"x\""),
            ("f:4: ", "missing field `tool`"),
            ("f:5: `tool`", "is empty"),
            ("f:6: `result_sha1`", "expected 40 hexadecimal digits"),
            ("f:7: `at_ms`", "from 0 up"),
            ("f:8: is no JSON", "column"),
            ("f:9: ", "duplicate field `tool`"),
            ("f:10: `write` is true", "`effect` is \"read_only\""),
            ("f:11: is no UTF-8", ""),
            ("c", ""),
        ];
        assert_eq!(said.len(), want.len(), "{said:#?}");
        for (said, (start, part)) in said.iter().zip(want) {
            assert!(said.starts_with(start) && said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_one_bad_line() {
        let lines = |text: &str| {
            let bytes = Cursor::new(text.as_bytes().to_vec());
            Calls::of(Lines::from_reader("f", bytes, 20).unwrap())
                .map(|call| {
                    call.map_or_else(|error| error.to_string(), |call| call.tool.to_string())
                })
                .collect::<Vec<_>>()
        };
        let long = format!(
            "{{\"tool\":\"a\"}}\n{{\"tool\":\"{}\"}}\n{{\"tool\":\"b\"}}\n",
            "x".repeat(90)
        );
        assert_eq!(lines(&long), ["a", "f:2: longer than 20 bytes", "b"]);
        let last = "x".repeat(90);
        assert_eq!(lines(&last), ["f:1: longer than 20 bytes"]);
    }

    #[test]
    fn a_session_is_a_text_or_a_number() {
        let session = |value: &str| {
            let line = format!("{{\"tool\":\"a\",\"session\":{value},\"trace\":{value}}}");
            RecordedCall::from_line(line.as_bytes()).map(|call| {
                assert_eq!(call.session, call.trace);
                call.session
            })
        };
        for (value, want) in [
            ("\"s\"", "s"),
            ("7", "7"),
            ("-7", "-7"),
            ("1.5", "1.5"),
            ("null", ""),
        ] {
            assert_eq!(session(value).unwrap(), want);
        }
        for value in ["[7]", "{}", "true"] {
            let error = session(value).unwrap_err().to_string();
            assert!(error.contains("expected a text or a number"), "{error}");
        }
    }

    #[test]
    fn a_file_that_breaks_off_says_where() {
        let mut broken = gz("{\"tool\":\"a\"}\n{\"tool\":\"b\"}\n");
        broken.truncate(broken.len() - 9);
        let said = said(broken);
        let last = said.last().unwrap();
        assert!(last.starts_with("f:"), "{said:?}");
    }

    #[test]
    fn null_is_the_same_as_absent() {
        let line = br#"{"tool":"a","trace":null,"session":null,"seq":null,"args":null,
            "result_sha1":null,"result_bytes":null,"error":null,"write":null,"layer":null,
            "at_ms":null,"duration_ms":null,"effect":null,"idempotent":null,"ttl_ms":null,
            "delivery":null,"cache":null,"set":null,"principal":null}"#;
        let call = RecordedCall::from_line(line).unwrap();
        let bare = RecordedCall::from_line(b"{\"tool\":\"a\"}").unwrap();
        assert_eq!(format!("{call:?}"), format!("{bare:?}"));
        assert_eq!(call.arguments(), "{}");
    }
}
