//! One log on the disk: the file that is written, the closed ones beside it, the head.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::chain::{Link, Seal};
use crate::notes::Note;
use crate::{AuditConfig, Fsync, time};

use super::end::End;
use super::head::{Head, private};
use super::paths::{Paths, folder};

/// A log that is written. Nobody else writes it as long as this is there.
#[derive(Debug)]
pub(crate) struct LogFile {
    paths: Paths,
    seal: Seal,
    file: File,
    /// Held for its lock.
    _lock: File,
    /// Names the log in all its files.
    log: String,
    number: u64,
    link: Link,
    began: SystemTime,
    /// Up to here the file is good.
    len: u64,
    /// What was written did not end where it should: what is half there is still to be taken away.
    is_torn: bool,
    /// Lines that are not written yet.
    buffer: Vec<u8>,
    /// What the head is to say and does not yet.
    is_ahead: bool,
    /// The folder has a file that it may forget if the machine stops.
    is_new: bool,
    limits: Limits,
    #[cfg(test)]
    pub(crate) fails: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

#[derive(Debug)]
struct Limits {
    max_bytes: u64,
    max_age: Option<Duration>,
    keep_files: Option<u64>,
    /// Whether what is written is ever brought to the disk.
    to_disk: bool,
}

impl LogFile {
    /// Goes on where the log ends, or begins one. What is wrong with the end is written into it.
    ///
    /// # Errors
    ///
    /// If it cannot be written, is written by somebody else, or was made with another key.
    pub(crate) fn open(path: &Path, config: &AuditConfig) -> io::Result<Self> {
        let paths = Paths::new(path);
        let seal = Seal::new(config.key.as_ref());
        std::fs::create_dir_all(folder(path))?;
        let lock = lock(&paths.lock)?;
        let end = End::find(&paths, &seal)?;
        let file = private(OpenOptions::new().read(true).append(true).create(true)).open(path)?;
        let mut log = Self {
            file,
            _lock: lock,
            log: end.log,
            number: end.number,
            link: end.link,
            began: end.began,
            len: end.len,
            is_torn: false,
            buffer: Vec::new(),
            is_ahead: true,
            is_new: end.len == 0,
            limits: Limits {
                max_bytes: config.max_bytes,
                max_age: config.max_age,
                keep_files: config.keep_files,
                to_disk: config.fsync != Fsync::Never,
            },
            paths,
            seal,
            #[cfg(test)]
            fails: std::sync::Arc::default(),
        };
        if end.len == 0 {
            log.begin();
        }
        log.buffer.extend_from_slice(&end.line_feed);
        for note in end.notes {
            log.note(&note);
        }
        log.note(&Note::Opened {
            version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        log.flush()?;
        log.sync()?;
        Ok(log)
    }

    /// Writes the first line of a new file.
    fn begin(&mut self) {
        let now = time::now();
        self.number += 1;
        self.began = now;
        let note = Note::file(&self.log, self.number, self.seal.name());
        self.push(&note.body(), now);
    }

    /// Adds a record of the log about itself.
    pub(crate) fn note(&mut self, note: &Note) {
        self.push(&note.body(), time::now());
    }

    /// Adds a record: the inside of its object.
    pub(crate) fn push(&mut self, body: &[u8], at: SystemTime) {
        self.link
            .write(&mut self.buffer, &self.seal, &time::text(at), body);
    }

    /// Returns how many bytes wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// Begins the next file if this one is full, or old.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, removed or renamed: all goes on in the one there is.
    pub(crate) fn rotate_if_due(&mut self, now: SystemTime) -> io::Result<()> {
        let len = self.len + self.buffer.len() as u64;
        let age = now.duration_since(self.began).unwrap_or_default();
        if len < self.limits.max_bytes && self.limits.max_age.is_none_or(|most| age < most) {
            return Ok(());
        }
        self.flush()?;
        self.sync()?;
        let closed = self.paths.closed(self.number);
        if !closed.exists() {
            std::fs::rename(&self.paths.active, closed)?;
        } else if self.paths.active.exists() {
            let text = format!("{} is in the way", closed.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let mut options = OpenOptions::new();
        self.file =
            private(options.read(true).append(true).create_new(true)).open(&self.paths.active)?;
        self.len = 0;
        self.is_new = true;
        self.begin();
        let gone = self.outlived()?;
        if let Some(oldest) = gone.last().map(|(number, _)| number + 1) {
            // told before it is done: a file that is gone without a word was taken
            self.note(&Note::Retention { oldest });
        }
        self.flush()?;
        self.sync()?;
        gone.into_iter()
            .try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    /// Returns the closed files that are no longer kept, oldest first.
    fn outlived(&self) -> io::Result<Vec<(u64, std::path::PathBuf)>> {
        let Some(keep) = self.limits.keep_files else {
            return Ok(Vec::new());
        };
        let oldest = self.number.saturating_sub(keep);
        let mut closed = self.paths.all_closed()?;
        closed.retain(|(number, _)| *number < oldest);
        Ok(closed)
    }

    /// Writes what waits. What cannot be written waits on.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
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
            // what is half there would spoil what comes after it
            self.is_torn = self.file.set_len(self.len).is_err();
            return Err(error);
        }
        self.len += self.buffer.len() as u64;
        self.buffer.clear();
        self.is_ahead = true;
        Ok(())
    }

    /// Brings what was written to the disk, if that is asked for, and says in the head where the log
    /// ends. Never the other way round: a head that knows more than the log looks like a cut.
    ///
    /// # Errors
    ///
    /// If either cannot be written.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.is_ahead || !self.buffer.is_empty() {
            return Ok(());
        }
        if self.limits.to_disk {
            self.file.sync_data()?;
            if std::mem::take(&mut self.is_new) {
                sync_folder(folder(&self.paths.active));
            }
        }
        if let Some(head) = Head::new(&self.log, self.number, self.link, &self.seal) {
            head.write(&self.paths.head, self.limits.to_disk)?;
        }
        self.is_ahead = false;
        Ok(())
    }

    /// Says in the log that it ends in good order.
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

/// A new name is on the disk only when its folder is. Not every file system can be told so; those that
/// cannot do it by themselves, or not at all.
fn sync_folder(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!(%error, "the folder of the audit log is not brought to the disk");
    }
}

/// Two processes that wrote one log would break its chain.
fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let lock = private(options.write(true).create(true).truncate(false)).open(path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another process writes this log; give each process a path of its own",
        )),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}
