//! The thread that writes.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::time::Instant;

use super::Recorded;
use super::line::Scribe;
use crate::error::AppError;

/// What the writer is sent: a call, or `None` at the end.
pub(super) type Message = Option<Box<Recorded>>;

/// How many of the sent calls were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) lines: u64,
    /// Lines that could not be written.
    pub(super) lost: u64,
}

/// How late a line may be written.
const LATE: Duration = Duration::from_secs(1);
/// How many bytes are written at once before that.
const MUCH: usize = 1 << 20;
/// Writes calls until the end is asked for, or no sender is left.
pub(super) fn run(calls: &Receiver<Message>, mut file: File, scribe: &Scribe) -> Written {
    let mut written = Written::default();
    while let Ok(Some(mut recorded)) = calls.recv() {
        let due = Instant::now() + LATE;
        let (mut bytes, mut lines) = (Vec::new(), 0);
        let ended = loop {
            // plain data can always be serialised
            let line = scribe.describe(&recorded).write_line(&mut bytes);
            lines += u64::from(line.is_ok());
            drop(recorded);
            if bytes.len() >= MUCH {
                break false;
            }
            match calls.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Some(next)) => recorded = next,
                Err(RecvTimeoutError::Timeout) => break false,
                Ok(None) | Err(RecvTimeoutError::Disconnected) => break true,
            }
        };
        written.count(&file.append(&bytes), lines);
        if ended {
            break;
        }
    }
    written
}

impl Written {
    fn count(&mut self, appended: &io::Result<()>, lines: u64) {
        match appended {
            Ok(()) => self.lines += lines,
            Err(error) => {
                if self.lost == 0 {
                    tracing::error!(%error, "calls cannot be recorded; said once, counted at the end");
                }
                self.lost += lines;
            }
        }
    }
}

/// A recording that grows. What is written at once is a whole: in a compressed file, a member of
/// its own, so that the file can be read whenever the process ends.
#[derive(Debug)]
pub(super) struct File {
    file: std::fs::File,
    compressed: bool,
    /// The length of the complete part of the file.
    length: u64,
}

/// How gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

impl File {
    /// Opens a file to append to; a new one can be read by its owner only. It is compressed if its
    /// name ends in `.gz`.
    ///
    /// # Errors
    ///
    /// [`AppError`] if it cannot be written, or is not what its name says.
    pub(super) fn open(path: &Path) -> Result<Self, AppError> {
        let failed = || AppError::io(format!("{} cannot be recorded to", path.display()));
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(failed())?;
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        let length = file.metadata().map_err(failed())?.len();
        let mut start = [0; 2];
        let is_gzip = file.read_exact(&mut start).is_ok() && start == GZIP;
        if length > 0 && is_gzip != compressed {
            return Err(AppError::Usage(format!(
                "{} is there and {} compressed, against its name; choose another",
                path.display(),
                if compressed { "not" } else { "is" }
            )));
        }
        let mut file = Self {
            file,
            compressed,
            length,
        };
        if length > 0 && !compressed {
            // ends a last line that broke off; an empty line is skipped
            file.append(b"\n").map_err(failed())?;
        }
        Ok(file)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let packed;
        let bytes = if self.compressed {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(bytes)?;
            packed = encoder.finish()?;
            &packed
        } else {
            bytes
        };
        let result = self.file.write_all(bytes);
        match result {
            Ok(()) => self.length += bytes.len() as u64,
            // a partial line would corrupt the next one
            Err(_) => self.file.set_len(self.length).unwrap_or_default(),
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use callward_replay::trace::Calls;

    use super::*;

    const LINE: &[u8] = b"{\"tool\":\"a\"}\n";

    fn read(path: &Path) -> Vec<String> {
        Calls::open(path)
            .unwrap()
            .map(|call| call.map_or_else(|error| error.to_string(), |call| call.tool.to_string()))
            .collect()
    }

    #[test]
    fn a_line_that_broke_off_takes_no_other_along() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "{\"tool\":\"a\"}\n{\"too").unwrap();
        File::open(&path).unwrap().append(LINE).unwrap();
        let read = read(&path);
        assert_eq!(
            (read.len(), &*read[0], &*read[2]),
            (3, "a", "a"),
            "{read:?}"
        );
    }

    #[test]
    fn a_file_that_is_not_what_its_name_says_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a.gz");
        std::fs::write(&plain, LINE).unwrap();
        let error = File::open(&plain).unwrap_err().to_string();
        assert!(error.contains("not compressed"), "{error}");
        assert_eq!(std::fs::read(&plain).unwrap(), LINE);
        let nowhere = folder.path().join("none").join("a.jsonl");
        assert!(
            File::open(&nowhere)
                .unwrap_err()
                .to_string()
                .contains("cannot be recorded")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_written_is_counted_and_nothing_else_happens() {
        let mut full = File::open(Path::new("/dev/full")).unwrap();
        let mut written = Written::default();
        for lines in 1..=2 {
            written.count(&full.append(LINE), lines);
        }
        assert_eq!(written, Written { lines: 0, lost: 3 });
    }
}
