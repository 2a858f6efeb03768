//! Where a log ends that is there already, and what is wrong with its end.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::chain::{Link, Seal};
use crate::notes::Note;
use crate::scan::{self, Scan};
use crate::time;

use super::head::Head;
use super::paths::Paths;

/// Where a log ends that is there already.
pub(super) struct End {
    pub(super) log: String,
    pub(super) number: u64,
    pub(super) link: Link,
    pub(super) began: SystemTime,
    /// How long the file is that is written on; 0 for a new one.
    pub(super) len: u64,
    /// What ends a line that broke off.
    pub(super) line_feed: Vec<u8>,
    pub(super) notes: Vec<Note>,
}

impl End {
    pub(super) fn find(paths: &Paths, seal: &Seal) -> io::Result<Self> {
        let mut notes = Vec::new();
        let head = match Head::read(&paths.head, seal) {
            Ok(head) => head,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                notes.push(fault(error.to_string()));
                None
            }
            Err(error) => return Err(error),
        };
        let mut end = match Self::of_active(paths, seal, &mut notes, head.as_ref())? {
            Some(end) => end,
            None => Self::of_closed(paths, seal, &mut notes)?,
        };
        let is_new = end.link.seq <= 2 && end.number <= 1;
        match head {
            Some(head) if head.log != end.log => {
                notes.push(fault(format!(
                    "the head is that of the log {}, which ended with record {} and is gone",
                    head.log, head.seq
                )));
            }
            Some(head) if head.seq >= end.link.seq => notes.push(fault(format!(
                "the log ends before record {}, which the head says is there with the hash {}",
                end.link.seq, head.hash
            ))),
            None if !is_new && notes.is_empty() => {
                notes.push(fault(
                    "the head is missing: whether the end was cut cannot be told".into(),
                ));
            }
            _ => {}
        }
        notes.append(&mut end.notes);
        // the repair comes first: it speaks of the line before it
        notes.sort_by_key(|note| !matches!(note, Note::Repair { .. }));
        Ok(Self { notes, ..end })
    }

    /// Reads the file that was written last.
    fn of_active(
        paths: &Paths,
        seal: &Seal,
        notes: &mut Vec<Note>,
        head: Option<&Head>,
    ) -> io::Result<Option<Self>> {
        if !paths.active.exists() {
            return Ok(None);
        }
        let mut scan = Scan::new(seal, head.and_then(Head::watched));
        let read = scan::read(&paths.active, &mut scan, &mut |_| {})?;
        let len = std::fs::metadata(&paths.active)?.len();
        if len == read.tail.len() as u64 {
            // not even its first line is whole, so no call is told of: begun anew
            OpenOptions::new()
                .write(true)
                .open(&paths.active)?
                .set_len(0)?;
            return Ok(None);
        }
        let Some(began) = scan.began else {
            let what = read.wrong.map(|(_, _, what)| what).unwrap_or_default();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "its first line is not that of a log of ours ({what}); choose another path, or \
                     the key it was made with"
                ),
            ));
        };
        if scan.watched_was_right == Some(false) {
            notes.push(fault(
                "the record that the head names has another hash: the log was rewritten".into(),
            ));
        }
        let tail = match &read.wrong {
            None => read.tail,
            Some((line, byte, what)) => {
                notes.push(fault(format!(
                    "file {}, line {line}, byte {byte}: {what}",
                    scan.number
                )));
                last_line(&paths.active)?
            }
        };
        let mut of = (scan.link, Some(scan.number), scan.log.clone());
        if read.wrong.is_some()
            && let Some((link, number, log)) = scan::last_link(&paths.active)?
        {
            of = (Some(link), Some(number), Some(log));
        }
        let (Some(mut link), Some(number), Some(log)) = of else {
            return Ok(None);
        };
        let mut end = Self {
            log,
            number,
            link,
            began,
            len,
            line_feed: Vec::new(),
            notes: Vec::new(),
        };
        if !tail.is_empty() {
            end.line_feed.push(b'\n');
            if read.wrong.is_none() && scan.line(&tail, false).is_ok() && !scan.has_torn() {
                // all of it was written but the line feed
                link = scan.link.unwrap_or(link);
            } else {
                end.notes.push(Note::Repair {
                    torn_bytes: tail.len() as u64,
                    torn_sha256: Seal::new(None).hash(&tail).to_string(),
                });
            }
        }
        Ok(Some(Self { link, ..end }))
    }

    /// Goes on behind the last closed file, or begins a log.
    fn of_closed(paths: &Paths, seal: &Seal, notes: &mut Vec<Note>) -> io::Result<Self> {
        let last = paths.all_closed()?.pop();
        let (link, number, log) = match &last {
            None => (Link::FIRST, 0, random_name()),
            Some((_, path)) => {
                let mut scan = Scan::new(seal, None);
                let read = scan::read(path, &mut scan, &mut |_| {})?;
                if let Some((line, byte, what)) = read.wrong {
                    notes.push(fault(format!(
                        "file {}, line {line}, byte {byte}: {what}",
                        path.display()
                    )));
                }
                scan::last_link(path)?.ok_or_else(|| {
                    let text = format!("{} is no file of a log", path.display());
                    io::Error::new(io::ErrorKind::InvalidData, text)
                })?
            }
        };
        Ok(Self {
            log,
            number,
            link,
            began: time::now(),
            len: 0,
            line_feed: Vec::new(),
            notes: Vec::new(),
        })
    }
}

const fn fault(found: String) -> Note {
    Note::Fault { found }
}

/// Returns what stands behind the last line feed.
fn last_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut all = std::fs::read(path)?;
    let end = all.iter().rposition(|byte| *byte == b'\n');
    Ok(all.split_off(end.map_or(0, |end| end + 1)))
}

/// Names a log so that no two are called the same.
fn random_name() -> String {
    use std::hash::{BuildHasher, RandomState};

    // std seeds each state from the system's random source
    let word = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", word(), word())
}
