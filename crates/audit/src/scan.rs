//! Line after line: whether each follows from the one before.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::chain::{Hash, Line, Link, Seal};
use crate::notes::{FORMAT, Note, VERSION};
use crate::time;

/// The longest line that is read, in bytes. None that is written is nearly as long.
const LONGEST_LINE: u64 = 64 << 20;
/// So often is told how far a file is read, in bytes.
const STEP: u64 = 4 << 20;

/// Where a chain stands after the lines that were read.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    seal: &'a Seal,
    /// The line whose hash is known from elsewhere, and whether it was as it should be.
    watched: Option<(u64, Hash)>,
    pub(crate) watched_was_right: Option<bool>,
    /// Where the next line goes; nothing before the first line.
    pub(crate) link: Option<Link>,
    pub(crate) log: Option<String>,
    /// The number of the file that is read.
    pub(crate) number: u64,
    /// When that file was begun.
    pub(crate) began: Option<std::time::SystemTime>,
    /// Files before this one are removed on purpose.
    pub(crate) oldest: u64,
    torn: Option<Torn>,
    /// A process has begun to write, and has not said that it ended.
    is_open: bool,
    pub(crate) totals: Totals,
}

/// What was read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) records: u64,
    pub(crate) calls: u64,
    pub(crate) refused: u64,
    pub(crate) repaired: u64,
    pub(crate) lost: u64,
    pub(crate) suppressed: u64,
    /// Processes that ended without closing the log, as the start of the next one shows.
    pub(crate) unclosed: u64,
    /// What was found wrong when a process began to write.
    pub(crate) found: Vec<String>,
    pub(crate) first: Option<Stamp>,
    pub(crate) last: Option<Stamp>,
}

/// A record's number and time.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub(crate) seq: u64,
    pub(crate) time: String,
}

/// A line that is none of ours: the next one may say that it broke off.
#[derive(Debug)]
struct Torn {
    bytes: u64,
    sha256: Hash,
}

/// What is wrong with a line.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// With the line itself.
    Here(String),
    /// With the line before it.
    Before(String),
}

const NOT_OURS: &str = "this is no record: the line was edited, or broke off and was not repaired";

impl<'a> Scan<'a> {
    pub(crate) fn new(seal: &'a Seal, watched: Option<(u64, Hash)>) -> Self {
        Self {
            seal,
            watched,
            watched_was_right: None,
            link: None,
            log: None,
            number: 0,
            began: None,
            oldest: 0,
            torn: None,
            is_open: false,
            totals: Totals::default(),
        }
    }

    /// Takes the next line, without its line feed.
    pub(crate) fn line(&mut self, bytes: &[u8], opens_file: bool) -> Result<(), Wrong> {
        let here = |what: &str| Err(Wrong::Here(what.to_owned()));
        let Some(line) = Line::read(bytes) else {
            if self.torn.is_some() {
                return Err(Wrong::Before(NOT_OURS.to_owned()));
            }
            if opens_file {
                return here(NOT_OURS);
            }
            self.torn = Some(Torn {
                bytes: bytes.len() as u64,
                sha256: Seal::new(None).hash(bytes),
            });
            return Ok(());
        };
        if let Some(link) = self.link {
            if line.seq != link.seq {
                return Err(Wrong::Here(format!(
                    "record {} stands where record {} is expected: lines were removed, added or \
                     moved",
                    line.seq, link.seq
                )));
            }
            if line.prev != link.prev {
                return here(
                    "it does not follow from the record before: one of the two was replaced",
                );
            }
        }
        if !line.is_whole(self.seal) {
            return here(
                "its hash is not that of its text: it was edited, or made with another key",
            );
        }
        let Some((kind, time)) = line.kind() else {
            return here("it has no time and kind");
        };
        self.meaning(&line, kind, time, bytes, opens_file)?;
        if let Some((seq, hash)) = self.watched
            && seq == line.seq
        {
            self.watched_was_right = Some(hash == line.hash);
        }
        let stamp = Stamp {
            seq: line.seq,
            time: time.to_owned(),
        };
        if self.totals.first.is_none() {
            self.totals.first = Some(stamp.clone());
        }
        self.totals.last = Some(stamp);
        self.totals.records += 1;
        self.link = Some(Link {
            seq: line.seq.saturating_add(1),
            prev: line.hash,
        });
        Ok(())
    }

    fn meaning(
        &mut self,
        line: &Line<'_>,
        kind: &str,
        time: &str,
        bytes: &[u8],
        opens_file: bool,
    ) -> Result<(), Wrong> {
        if opens_file != (kind == "file") {
            return Err(Wrong::Here(
                "only the first line of a file says which file it is, and it always does".into(),
            ));
        }
        if kind != "repair" && self.torn.is_some() {
            return Err(Wrong::Before(NOT_OURS.to_owned()));
        }
        match kind {
            "call" => {
                self.totals.calls += 1;
                self.is_open = true;
            }
            "refused" => {
                self.totals.refused += 1;
                self.is_open = true;
            }
            "opened" if std::mem::replace(&mut self.is_open, true) => self.totals.unclosed += 1,
            "closed" => self.is_open = false,
            "file" | "repair" | "fault" | "lost" | "retention" | "suppressed" => {
                let note = serde_json::from_slice(bytes)
                    .map_err(|error| Wrong::Here(format!("it cannot be read: {error}")))?;
                self.note(line, note, time)?;
            }
            // later versions may know more kinds
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, line: &Line<'_>, note: Note, time: &str) -> Result<(), Wrong> {
        match note {
            Note::File {
                format,
                version,
                log,
                file,
                hash_with,
            } => {
                if format != FORMAT || version != VERSION {
                    return Err(Wrong::Here(format!(
                        "expected {FORMAT}, version {VERSION}, found {format}, version {version}"
                    )));
                }
                if hash_with != self.seal.name() {
                    return Err(Wrong::Here(format!(
                        "the file was made with {hash_with}, and is read with {}",
                        self.seal.name()
                    )));
                }
                let known = self.log.replace(log);
                if known.is_some() && known != self.log {
                    return Err(Wrong::Here("the file belongs to another log".into()));
                }
                if self.link.is_some() && Some(file) != self.number.checked_add(1) {
                    return Err(Wrong::Here(format!(
                        "file {file} stands behind file {}",
                        self.number
                    )));
                }
                if file == 1 && (line.seq != 0 || line.prev != Hash::NONE) {
                    return Err(Wrong::Here("the first file begins with record 0".into()));
                }
                self.number = file;
                self.began = time::read(time);
            }
            Note::Repair {
                torn_bytes,
                torn_sha256,
            } => {
                let torn = self.torn.take();
                let fits = torn.is_some_and(|torn| {
                    torn.bytes == torn_bytes && torn.sha256.to_string() == torn_sha256
                });
                if !fits {
                    return Err(Wrong::Before(
                        "this is not the line that broke off here: another one was repaired".into(),
                    ));
                }
                self.totals.repaired += 1;
            }
            Note::Fault { found } => self.totals.found.push(found),
            Note::Lost { records } => self.totals.lost += records,
            Note::Suppressed { records } => self.totals.suppressed += records,
            Note::Retention { oldest } => self.oldest = self.oldest.max(oldest),
            Note::Opened { .. } | Note::Closed {} => {}
        }
        Ok(())
    }

    /// Says whether a process has begun to write, and has not said that it ended.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Says whether a line stands at the end that nothing explains.
    pub(crate) const fn has_torn(&self) -> bool {
        self.torn.is_some()
    }
}

/// What was read of a file.
#[derive(Debug, Default)]
pub(crate) struct FileRead {
    /// The first thing that is wrong, where it is, and from which byte on.
    pub(crate) wrong: Option<(u64, u64, String)>,
    /// What stands behind the last line feed.
    pub(crate) tail: Vec<u8>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

/// Reads a file to its end, or to the first line that is wrong. `seen` is told how many bytes were
/// read, every 4 MiB.
pub(crate) fn read(
    path: &Path,
    scan: &mut Scan<'_>,
    seen: &mut dyn FnMut(u64),
) -> io::Result<FileRead> {
    let mut lines = BufReader::with_capacity(256 << 10, std::fs::File::open(path)?);
    let mut out = FileRead::default();
    let (mut line, mut before, mut told) = (Vec::new(), (0, 0), 0);
    loop {
        line.clear();
        let read = Read::by_ref(&mut lines)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)? as u64;
        if line.pop_if(|last| *last == b'\n').is_none() {
            out.tail = line;
            break;
        }
        let here = (out.lines + 1, out.bytes);
        match scan.line(&line, out.lines == 0) {
            Ok(()) => {}
            Err(Wrong::Here(what)) => {
                out.wrong = Some((here.0, here.1, what));
                break;
            }
            Err(Wrong::Before(what)) => {
                let (number, byte) = before;
                out.wrong = Some((number, byte, what));
                break;
            }
        }
        before = here;
        out.lines += 1;
        out.bytes += read;
        if out.bytes - told >= STEP {
            told = out.bytes;
            seen(told);
        }
    }
    if out.wrong.is_none() && scan.has_torn() {
        // only a line behind it could explain it, and there is none in this file
        out.wrong = Some((before.0, before.1, NOT_OURS.to_owned()));
    }
    Ok(out)
}

/// Finds where a chain goes on after its last readable line, whatever is wrong with the others: the
/// link, the file's number, and the log's name.
pub(crate) fn last_link(path: &Path) -> io::Result<Option<(Link, u64, String)>> {
    let lines = BufReader::new(std::fs::File::open(path)?);
    let (mut link, mut of) = (None, None);
    for line in lines.split(b'\n') {
        let line = line?;
        let Some(read) = Line::read(&line) else {
            continue;
        };
        if of.is_none()
            && let Ok(Note::File { file, log, .. }) = serde_json::from_slice(&line)
        {
            of = Some((file, log));
        }
        link = Some(Link {
            seq: read.seq.saturating_add(1),
            prev: read.hash,
        });
    }
    Ok(link
        .zip(of)
        .map(|(link, (number, log))| (link, number, log)))
}
