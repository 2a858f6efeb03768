//! One log on disk: the active file and the closed ones.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use humantime::{format_rfc3339_micros, parse_rfc3339};

use crate::chain::{Line, Link, Seal, no_hash};
use crate::notes::{FORMAT, Note, VERSION};
use crate::{AuditConfig, Fsync, time};

use super::paths::{all_closed, closed, folder};

/// A log open for writing. A lock file excludes other processes.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    seal: Seal,
    file: File,
    _lock: File,
    end: End,
    /// The length of the file up to the last complete write.
    len: u64,
    /// A write failed in the middle, and the file is still to be truncated to `len`.
    is_torn: bool,
    /// Lines that are not written yet.
    pub(super) buffer: Vec<u8>,
    is_unsynced: bool,
    /// The folder entry of the file may not be on disk yet.
    is_new: bool,
    config: AuditConfig,
    #[cfg(test)]
    pub(crate) fails: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// The end of the log.
#[derive(Debug)]
struct End {
    /// The random name of the log.
    log: String,
    /// The number of the file.
    number: u64,
    link: Link,
    /// When the file was begun.
    began: SystemTime,
}

impl LogFile {
    /// Opens a log, or creates it. An active file that ends in a partial line, because a process
    /// was killed, is closed as it is; the chain continues in the next file.
    ///
    /// # Errors
    ///
    /// If the log cannot be written, is locked by another process, or has another key.
    pub(crate) fn open(path: &Path, config: &AuditConfig) -> io::Result<Self> {
        let seal = Seal::new(config.key.as_ref());
        std::fs::create_dir_all(folder(path))?;
        let lock = lock(&path.with_added_extension("lock"))?;
        let mut end = None;
        if path.exists() {
            let (found, is_torn) = last_of(path, &seal)?;
            end = found;
            if let Some(end) = end.as_ref().filter(|_| is_torn) {
                close(path, end.number)?;
            }
        }
        let is_new = end.is_none() || !path.exists();
        if end.is_none()
            && let Some((_, closed)) = all_closed(path)?.pop()
        {
            end = last_of(&closed, &seal)?.0;
            if end.is_none() {
                let text = format!("{} is not an audit log", closed.display());
                return Err(invalid(&text));
            }
        }
        let file = private().open(path)?;
        if is_new {
            // drops the beginning of a first line
            file.set_len(0)?;
        }
        // std seeds each state from the system's random source
        let word = || RandomState::new().hash_one(0_u8);
        let mut log = Self {
            len: file.metadata()?.len(),
            file,
            _lock: lock,
            end: end.unwrap_or_else(|| End {
                log: format!("{:016x}{:016x}", word(), word()),
                number: 0,
                link: Link {
                    seq: 0,
                    prev: no_hash(),
                },
                began: time::now(),
            }),
            is_torn: false,
            buffer: Vec::new(),
            is_unsynced: true,
            is_new,
            config: config.clone(),
            path: path.to_owned(),
            seal,
            #[cfg(test)]
            fails: std::sync::Arc::default(),
        };
        if is_new {
            log.begin();
        }
        log.note(&Note::Opened {
            version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        log.flush()?;
        log.sync()?;
        Ok(log)
    }

    /// Adds the first line of a new file.
    fn begin(&mut self) {
        self.end.number += 1;
        self.end.began = time::now();
        self.note(&Note::File {
            format: FORMAT.to_owned(),
            version: VERSION,
            log: self.end.log.clone(),
            file: self.end.number,
            hash_with: self.seal.name().to_owned(),
        });
    }

    /// Adds a record of the log about itself.
    pub(crate) fn note(&mut self, note: &Note) {
        self.push(&note.members(), time::now());
    }

    /// Adds a record with these members.
    pub(crate) fn push(&mut self, members: &str, at: SystemTime) {
        let link = &mut self.end.link;
        link.write(
            &mut self.buffer,
            &self.seal,
            &format_rfc3339_micros(at).to_string(),
            members,
        );
    }

    /// Begins the next file if this one has reached its maximum size or age.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, renamed or deleted; the current file stays in use.
    pub(crate) fn rotate_if_due(&mut self, now: SystemTime) -> io::Result<()> {
        let len = self.len + self.buffer.len() as u64;
        let age = now.duration_since(self.end.began).unwrap_or_default();
        if len < self.config.max_bytes && self.config.max_age.is_none_or(|max| age < max) {
            return Ok(());
        }
        self.flush()?;
        self.sync()?;
        close(&self.path, self.end.number)?;
        self.file = private().create_new(true).open(&self.path)?;
        self.len = 0;
        self.is_new = true;
        self.begin();
        // the closed files beyond the configured number
        let kept = self.config.keep_files.unwrap_or(u64::MAX);
        let oldest = self.end.number.saturating_sub(kept);
        let mut expired = all_closed(&self.path)?;
        expired.retain(|(number, _)| *number < oldest);
        if let Some(oldest) = expired.last().map(|(number, _)| number + 1) {
            // recorded before the deletion: a file missing without a record was taken away
            self.note(&Note::Retention { oldest });
        }
        self.flush()?;
        self.sync()?;
        expired
            .into_iter()
            .try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    /// Writes the buffer. On failure it stays in memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        #[cfg(test)]
        if self.fails.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space"));
        }
        if let Err(error) = self.file.write_all(&self.buffer) {
            // a partial line would break the chain
            self.is_torn = self.file.set_len(self.len).is_err();
            return Err(error);
        }
        self.len += self.buffer.len() as u64;
        self.buffer.clear();
        self.is_unsynced = true;
        Ok(())
    }

    /// Syncs what was written to disk, unless [`Fsync::Never`] is configured.
    ///
    /// # Errors
    ///
    /// If the sync fails.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.is_unsynced && self.config.fsync != Fsync::Never {
            self.file.sync_data()?;
            if std::mem::take(&mut self.is_new) {
                let folder = File::open(folder(&self.path));
                // some file systems cannot, or need not
                if let Err(error) = folder.and_then(|folder| folder.sync_all()) {
                    tracing::debug!(%error, "the folder of the audit log is not synced");
                }
            }
        }
        self.is_unsynced = false;
        Ok(())
    }

    /// Adds the closing record.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.note(&Note::Closed {});
        self.flush()?;
        self.sync()
    }
}

/// Gives the active file its number.
fn close(active: &Path, number: u64) -> io::Result<()> {
    let closed = closed(active, number);
    if !active.exists() {
        // renamed before, and the next file could not be created
        return Ok(());
    }
    if closed.exists() {
        let text = format!("{} already exists", closed.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    std::fs::rename(active, closed)
}

/// Reads where a file ends, and whether it ends in anything but a complete record. Returns no end
/// if the file has no complete line.
fn last_of(path: &Path, seal: &Seal) -> io::Result<(Option<End>, bool)> {
    let mut lines = BufReader::new(File::open(path)?);
    let (mut line, mut end, mut is_torn) = (Vec::new(), None, false);
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok((end, is_torn));
        }
        let parsed = line.strip_suffix(b"\n").and_then(Line::parse);
        is_torn = parsed.is_none();
        match (parsed, &mut end) {
            (Some(line), Some(End { link, .. })) => *link = line.link(),
            (Some(line), end @ None) => *end = Some(first_of(line, seal)?),
            (None, None) if line.ends_with(b"\n") => {
                return Err(invalid("the first line is not that of an audit log"));
            }
            (None, _) => {}
        }
    }
}

/// Reads the first line of a file.
fn first_of(line: Line<'_>, seal: &Seal) -> io::Result<End> {
    if !line.is_intact(seal) {
        return Err(invalid("it was edited, or has another key"));
    }
    let Ok(Note::File { log, file, .. }) = line.note() else {
        return Err(invalid("the first line is not that of an audit log"));
    };
    Ok(End {
        log,
        number: file,
        link: line.link(),
        began: parse_rfc3339(line.time).unwrap_or_else(|_| time::now()),
    })
}

fn invalid(what: &str) -> io::Error {
    let text = format!("{what}; choose another path, or move the file away");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Takes the lock: two writers would break the chain.
fn lock(path: &Path) -> io::Result<File> {
    let lock = private().open(path)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another process writes this log; give each process its own path",
        ),
    })?;
    Ok(lock)
}

/// Returns options to append to a file; a new one is readable by its owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
