//! Verifies logs: each line must follow from the one before.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::AuditKey;
use crate::chain::{Line, Seal, no_hash};
use crate::log::{all_closed, number_in};
use crate::notes::{FORMAT, Note, VERSION};

/// The longest line that is read. Written lines are far shorter.
const MAX_LINE: u64 = 64 << 20;

/// The result of verifying one log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The given path.
    pub log: PathBuf,
    /// The number of files.
    pub files: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of valid lines, including those of the log about itself.
    pub records: u64,
    /// The number of calls.
    pub calls: u64,
    /// The number of refused calls without a known tool.
    pub refused: u64,
    /// The requests for approval, by the security levels of their tools.
    pub approvals: BTreeMap<String, u64>,
    /// The number and time of the first record.
    pub first: Option<(u64, String)>,
    /// The number and time of the last record.
    pub last: Option<(u64, String)>,
    /// The hash of the last record. A copy kept elsewhere proves later that nothing was cut.
    pub last_hash: Option<String>,
    /// Partial lines, left by killed processes at the end of files.
    pub torn: u64,
    /// Calls without a record, because the file could not be written.
    pub lost: u64,
    /// Refusals without a record, because of their rate.
    pub suppressed: u64,
    /// The number of the first file that is kept; the files before it were deleted as configured.
    pub oldest: u64,
    /// `true` if the log ends with its closing record; `None` for a closed file alone. Otherwise
    /// the log is being written, its process was killed, or its end was cut.
    pub closed: Option<bool>,
    /// Earlier processes that did not close the log.
    pub unclosed: u64,
    /// The first fault.
    pub fault: Option<Fault>,
}

/// The place and the kind of a fault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 for the whole file.
    pub line: u64,
    /// The position of the line in bytes, from 0.
    pub byte: u64,
    /// The description.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ", line {}, byte {}", self.line, self.byte)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl Report {
    /// Returns `true` if there is no fault.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.fault.is_none()
    }
}

/// Verifies each log, up to its first fault.
///
/// The path of a log, such as `audit.jsonl`, stands for all its files: `audit.000001.jsonl` and so
/// on. The path of a closed file stands for this file alone; files missing before or after it are
/// not detected.
///
/// # Errors
///
/// If a file cannot be read. A fault of a log is not an error: it is in the [`Report`].
pub fn verify(paths: &[PathBuf], key: Option<&AuditKey>) -> io::Result<Vec<Report>> {
    let seal = Seal::new(key);
    paths.iter().map(|path| verify_log(path, &seal)).collect()
}

/// Returns the existing files of a log, oldest first. A closed file stands for itself.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if number_in(path).is_some() && path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let closed = all_closed(path)?.into_iter().map(|(_, path)| path);
    let files = closed.chain([path.to_owned()]);
    Ok(files.filter(|path| path.is_file()).collect())
}

fn verify_log(path: &Path, seal: &Seal) -> io::Result<Report> {
    let mut scan = Scan {
        seal,
        log: None,
        number: 0,
        is_open: false,
        report: Report::default(),
    };
    scan.report.log = path.to_owned();
    let files = files(path)?;
    let Some(last) = files.last() else {
        let text = format!("{}: no such audit log", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    };
    for file in &files {
        scan.file(file, file == last && files.len() > 1)?;
        if !scan.report.is_whole() {
            return Ok(scan.report);
        }
    }
    let mut report = scan.report;
    if files == [path] && number_in(path).is_some() {
        // a closed file alone
        return Ok(report);
    }
    report.closed = Some(!scan.is_open);
    let first = (scan.number + 1).saturating_sub(report.files);
    if first > report.oldest.max(1) {
        let what = format!("the log begins with file {first}: the files before it are missing");
        let file = files.into_iter().next().unwrap_or_default();
        let none = Fault::default();
        report.fault = Some(Fault { file, what, ..none });
    }
    Ok(report)
}

/// The state of a scan over the lines of a log.
struct Scan<'a> {
    seal: &'a Seal,
    log: Option<String>,
    /// The number of the current file.
    number: u64,
    /// The last record is not that of a closed log.
    is_open: bool,
    report: Report,
}

impl Scan<'_> {
    /// Reads a file, up to its first fault. With `may_be_empty`, the file may have no complete
    /// line, because its process was killed when it began it.
    fn file(&mut self, path: &Path, may_be_empty: bool) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(256 << 10, File::open(path)?);
        let mut buffer = Vec::new();
        let (file, mut at) = (path.to_owned(), Fault::default());
        loop {
            buffer.clear();
            let mut limited = reader.by_ref().take(MAX_LINE);
            let read = limited.read_until(b'\n', &mut buffer)? as u64;
            at.line += 1;
            if buffer.pop_if(|last| *last == b'\n').is_none() {
                self.report.bytes += read;
                self.report.torn += u64::from(read > 0);
                self.is_open |= read > 0;
                if at.line == 1 && may_be_empty {
                    self.is_open = true;
                    return Ok(());
                } else if at.line == 1 {
                    at.what = "the file has no first line".into();
                }
                break;
            }
            if let Err(what) = self.line(&buffer, at.line == 1) {
                at.what = what;
                break;
            }
            at.byte += read;
            self.report.bytes += read;
        }
        self.report.files += 1;
        let number = self.number;
        let other = number_in(path).filter(|named| at.what.is_empty() && *named != number);
        if let Some(named) = other {
            (at.line, at.byte) = (0, 0);
            at.what = format!("file {number} has the name of file {named}");
        }
        self.report.fault = (!at.what.is_empty()).then_some(Fault { file, ..at });
        Ok(())
    }

    /// Takes a line without its line feed.
    fn line(&mut self, bytes: &[u8], is_first: bool) -> Result<(), String> {
        let line = Line::parse(bytes).ok_or("the line is not a record: it was edited")?;
        if let Some((last, _)) = self.report.last {
            let expected = last.saturating_add(1);
            if line.seq != expected {
                return Err(format!(
                    "found record {}, expected {expected}: lines were removed, added or moved",
                    line.seq
                ));
            }
        }
        if self
            .report
            .last_hash
            .as_ref()
            .is_some_and(|last| line.prev != last)
        {
            return Err("the record does not follow from the one before".into());
        }
        if !line.is_intact(self.seal) {
            return Err("the hash does not match: the line was edited, or has another key".into());
        }
        if is_first != (line.kind == "file") {
            return Err("the first line of a file, and no other, must name the file".into());
        }
        let report = &mut self.report;
        match line.kind {
            "closed" => self.is_open = false,
            "opened" => report.unclosed += u64::from(std::mem::replace(&mut self.is_open, true)),
            "call" => report.calls += 1,
            "refused" => report.refused += 1,
            "approval" => {
                if let Some(level) = line.requested()? {
                    *report.approvals.entry(level).or_default() += 1;
                }
            }
            "file" | "lost" | "retention" | "suppressed" => self.note(&line)?,
            // later versions may have more kinds
            _ => {}
        }
        self.is_open |= matches!(line.kind, "call" | "refused" | "approval");
        let report = &mut self.report;
        let stamp = (line.seq, line.time.to_owned());
        report.first.get_or_insert_with(|| stamp.clone());
        report.last = Some(stamp);
        report.last_hash = Some(line.hash.to_owned());
        report.records += 1;
        Ok(())
    }

    fn note(&mut self, line: &Line<'_>) -> Result<(), String> {
        let report = &mut self.report;
        match line.note()? {
            Note::File {
                format,
                version,
                log,
                file,
                hash_with,
            } => {
                if format != FORMAT || version != VERSION {
                    return Err(format!(
                        "expected {FORMAT}, version {VERSION}, found {format}, version {version}"
                    ));
                }
                if hash_with != self.seal.name() {
                    return Err(format!(
                        "the file was written with {hash_with}, and is verified with {}: another key",
                        self.seal.name()
                    ));
                }
                if self.log.get_or_insert_with(|| log.clone()) != &log {
                    return Err("the file belongs to another log".into());
                }
                if self.report.last.is_some() && Some(file) != self.number.checked_add(1) {
                    return Err(format!("file {file} follows file {}", self.number));
                }
                if file == 1 && (line.seq != 0 || line.prev != no_hash()) {
                    return Err("the first file does not begin with record 0".into());
                }
                self.number = file;
            }
            Note::Lost { records } => report.lost += records,
            Note::Suppressed { records } => report.suppressed += records,
            Note::Retention { oldest } => report.oldest = report.oldest.max(oldest),
            Note::Opened { .. } | Note::Closed {} => {}
        }
        Ok(())
    }
}
