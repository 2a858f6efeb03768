//! Reading a log back: whether it is all there, and as it was written.

mod report;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::AuditKey;
use crate::chain::Seal;
use crate::log::{Head, Paths, number_in};
use crate::scan::{self, Scan};

pub use self::report::{Fault, Report};

/// How far a log is read.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The file that is read.
    pub file: &'a Path,
    /// How many bytes of it were read.
    pub bytes: u64,
}

/// Reads logs to their ends, or to the first fault of each.
///
/// The path of a log, `audit.jsonl`, stands for all its files: the closed ones beside it,
/// `audit.000001.jsonl` and on, and its head. Paths of closed files are read by themselves, as one
/// piece of a chain in the order given: what is missing before and behind them cannot be told.
///
/// # Errors
///
/// If a file cannot be read. What is wrong with a log is no error: it stands in the [`Report`].
pub fn verify(
    paths: &[PathBuf],
    key: Option<&AuditKey>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> io::Result<Vec<Report>> {
    let seal = Seal::new(key);
    let mut reports = Vec::new();
    let mut piece: Vec<PathBuf> = Vec::new();
    for path in paths {
        if number_in(path).is_some() && path.exists() {
            piece.push(path.clone());
            continue;
        }
        reports.extend(of_piece(&std::mem::take(&mut piece), &seal, progress)?);
        reports.push(of_log(path, &seal, progress)?);
    }
    reports.extend(of_piece(&piece, &seal, progress)?);
    Ok(reports)
}

/// Returns the files of a log that are there, oldest first; that of a closed file is itself.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if number_in(path).is_some() && path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let paths = Paths::new(path);
    let mut files: Vec<_> = paths.all_closed()?;
    files.retain(|(_, path)| path.is_file());
    let mut files: Vec<_> = files.into_iter().map(|(_, path)| path).collect();
    if paths.active.exists() {
        files.push(paths.active);
    }
    Ok(files)
}

/// Reads closed files by themselves.
fn of_piece(
    files: &[PathBuf],
    seal: &Seal,
    progress: &mut dyn FnMut(Progress<'_>),
) -> io::Result<Option<Report>> {
    let Some(first) = files.first() else {
        return Ok(None);
    };
    let mut scan = Scan::new(seal, None);
    let mut report = Report::new(first);
    let tail = walk(files, &mut scan, &mut report, progress)?;
    report.take(&scan);
    if tail > 0 {
        report.fault_of_file(files.last(), "the file breaks off in the middle of a line");
    }
    report
        .notes
        .push("closed files alone: what is missing before and behind them cannot be told".into());
    Ok(Some(report))
}

fn of_log(path: &Path, seal: &Seal, progress: &mut dyn FnMut(Progress<'_>)) -> io::Result<Report> {
    let paths = Paths::new(path);
    let mut report = Report::new(path);
    // before the files: a log that is written meanwhile is never behind its head
    let head = match Head::read(&paths.head, seal) {
        Ok(head) => head,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            report.fault_of_head(&paths, error.to_string());
            None
        }
        Err(error) => return Err(error),
    };
    let mut files = files(path)?;
    if is_begun_anew(&files)? {
        files.pop();
        report.notes.push(
            "the newest file has no whole line yet: it is being written, or the process was killed \
             when it began it; the next start begins it anew"
                .into(),
        );
    }
    if files.is_empty() {
        if head.is_some() {
            report.fault_of_head(&paths, "the head is there, and every file is gone".into());
            return Ok(report);
        }
        let text = format!("{} is no log", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    let mut scan = Scan::new(seal, head.as_ref().and_then(Head::watched));
    let tail = walk(&files, &mut scan, &mut report, progress)?;
    report.take(&scan);
    if report.fault.is_some() {
        return Ok(report);
    }
    report.closed = Some(!scan.is_open() && tail == 0);
    front(&scan, &files, &mut report);
    let end = scan.link.map_or(0, |link| link.seq);
    match head {
        _ if report.fault.is_some() => {}
        None => report.fault_of_head(
            &paths,
            "the head is missing: whether the end was cut cannot be told".into(),
        ),
        Some(head) if Some(&head.log) != scan.log.as_ref() => {
            report.fault_of_head(&paths, "the head is that of another log".into());
        }
        Some(head) if head.seq >= end => report.fault_of_file(
            files.last(),
            &format!(
                "the log ends here, and the head says that record {} was written: the end was cut",
                head.seq
            ),
        ),
        Some(_) if scan.watched_was_right == Some(false) => report.fault_of_head(
            &paths,
            "the record that the head names has another hash: the log was rewritten".into(),
        ),
        Some(head) => report.after_head = end - head.seq - 1,
    }
    if tail > 0 {
        report.torn_bytes = tail;
        report.notes.push(format!(
            "the last line breaks off after {tail} bytes: it is being written, or the process was \
             killed while it was; the next start repairs it"
        ));
    }
    for found in &scan.totals.found {
        report.fault_of_file(files.last(), &format!("the log itself says: {found}"));
    }
    Ok(report)
}

/// Says whether the last file follows another one and has no line feed. A file is created first and its
/// first line written then. If its lines were cut, the head names one of them.
fn is_begun_anew(files: &[PathBuf]) -> io::Result<bool> {
    /// No first line is longer.
    const MOST: u64 = 4096;
    let [.., before, last] = files else {
        return Ok(false);
    };
    if number_in(before).is_none() || number_in(last).is_some() {
        return Ok(false);
    }
    let mut start = Vec::new();
    File::open(last)?.take(MOST).read_to_end(&mut start)?;
    Ok((start.len() as u64) < MOST && !start.contains(&b'\n'))
}

/// Says whether a log may begin where it does.
fn front(scan: &Scan<'_>, files: &[PathBuf], report: &mut Report) {
    let read = files.len() as u64;
    let first = (scan.number + 1).saturating_sub(read);
    if first <= 1 {
        return;
    }
    if scan.oldest >= first {
        let gone = first - 1;
        report.notes.push(format!(
            "begins with file {first}: the log says that the first {gone} were removed as the settings \
             ask"
        ));
    } else {
        report.fault_of_file(
            files.first(),
            &format!("begins with file {first}: the files before it are missing"),
        );
    }
}

/// Reads files one after the other, up to the first fault; returns how long the rest of a line is at
/// the end of the last.
fn walk(
    files: &[PathBuf],
    scan: &mut Scan<'_>,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress<'_>),
) -> io::Result<u64> {
    let mut tail = 0;
    for (place, file) in (1..).zip(files) {
        let read = scan::read(file, scan, &mut |bytes| {
            progress(Progress { file, bytes });
        })?;
        report.files += 1;
        report.bytes += read.bytes + read.tail.len() as u64;
        tail = read.tail.len() as u64;
        if let Some((line, byte, what)) = read.wrong {
            report.fault = Some(Fault::new(file, line, byte, what));
            return Ok(0);
        }
        let named = number_in(file);
        if read.lines == 0 {
            let what = "the file has no first line that says which file of which log it is";
            report.fault = Some(Fault::new(file, 1, 0, what));
            return Ok(0);
        }
        if named.is_some_and(|named| named != scan.number) {
            let what = format!("this is file {} under the name of another", scan.number);
            report.fault = Some(Fault::new(file, 1, 0, what));
            return Ok(0);
        }
        if tail > 0 && place < files.len() {
            let what = "the file breaks off in the middle of a line, and another follows it";
            report.fault = Some(Fault::new(file, read.lines + 1, read.bytes, what));
            return Ok(0);
        }
    }
    Ok(tail)
}
