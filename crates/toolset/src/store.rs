//! The file of toolsets: read, and changed by one process at a time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::error::ToolsetError;
use crate::file::Toolsets;

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// The toolsets at one moment.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// Grows with each change.
    pub generation: u64,
    /// What is in the file.
    pub file: Toolsets,
    /// `None` if there is no file.
    stamp: Option<Stamp>,
}

/// What of a file changes whenever its content does.
type Stamp = (u64, Option<SystemTime>, u64);

/// A file of toolsets, and what it had when it was last read. Beside it are `NAME.lock`, which
/// holds the lock of a change, and while one is written `NAME.new`.
///
/// All but [`toolsets`](Self::toolsets) read or write files: call them where that may block.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    current: ArcSwap<Snapshot>,
    /// Held while `current` is replaced.
    reading: Mutex<()>,
}

impl Store {
    /// Reads a file. One that does not exist has no toolsets yet.
    ///
    /// # Errors
    ///
    /// [`ToolsetError`] if the file cannot be read, or has an error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ToolsetError> {
        let store = Self {
            path: path.into(),
            current: ArcSwap::default(),
            reading: Mutex::default(),
        };
        store.refresh()?;
        Ok(store)
    }

    /// Returns the toolsets as they were last read or written.
    #[must_use]
    pub fn toolsets(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Reads the file if another process has changed it, and returns whether it has.
    ///
    /// # Errors
    ///
    /// [`ToolsetError`] if it cannot be read, or has an error: the toolsets stay as they were.
    pub fn refresh(&self) -> Result<bool, ToolsetError> {
        let _reading = self.reading.lock();
        let found = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(stamp(&found.map_err(|error| self.io(error))?)),
        };
        if found == self.current.load().stamp {
            return Ok(false);
        }
        let (toolsets, stamp) = self.read()?;
        self.replace(toolsets, stamp);
        Ok(true)
    }

    /// Reads the file, changes the toolsets and writes them, while no other process does. Once it
    /// returns, the change is durable; if it fails, nothing has changed.
    ///
    /// # Errors
    ///
    /// That of `change`, or [`ToolsetError`] if the file cannot be read or written, or has an
    /// error.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Toolsets) -> Result<T, ToolsetError>,
    ) -> Result<T, ToolsetError> {
        let _lock = self.lock()?;
        let _reading = self.reading.lock();
        let (mut toolsets, found) = self.read()?;
        let before = toolsets.clone();
        let done = change(&mut toolsets)?;
        let written = match toolsets == before {
            true => found,
            false => Some(self.write(&toolsets).map_err(|error| self.io(error))?),
        };
        if written != self.current.load().stamp {
            self.replace(toolsets, written);
        }
        Ok(done)
    }

    fn replace(&self, toolsets: Toolsets, stamp: Option<Stamp>) {
        let generation = self.current.load().generation + 1;
        let file = toolsets;
        self.current.store(Arc::new(Snapshot {
            generation,
            file,
            stamp,
        }));
    }

    fn read(&self) -> Result<(Toolsets, Option<Stamp>), ToolsetError> {
        // to open a pipe would wait for who writes into it
        if std::fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Err(self.invalid(0, 0, "this is not a regular file"));
        }
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Default::default()),
            opened => opened.map_err(|error| self.io(error))?,
        };
        let stamp = stamp(&file.metadata().map_err(|error| self.io(error))?);
        let mut text = Vec::new();
        let mut limited = file.take(MAX_BYTES + 1);
        limited
            .read_to_end(&mut text)
            .map_err(|error| self.io(error))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(self.invalid(0, 0, "it has more than 16 MiB"));
        }
        let toolsets = serde_json::from_slice(&text).map_err(|error| {
            let (text, at) = (error.to_string(), format!(" at line {}", error.line()));
            let what = text.rfind(&at).map_or(&*text, |end| &text[..end]);
            self.invalid(error.line(), error.column(), what)
        })?;
        Ok((toolsets, Some(stamp)))
    }

    /// Writes the file under another name, which a crash may leave, and then gives it its own.
    fn write(&self, toolsets: &Toolsets) -> io::Result<Stamp> {
        let mut text = serde_json::to_vec_pretty(toolsets)?;
        text.push(b'\n');
        if text.len() as u64 > MAX_BYTES {
            return Err(io::Error::other("it would have more than 16 MiB"));
        }
        let next = self.path.with_added_extension("new");
        let mut file = private().truncate(true).open(&next)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&next, &self.path)?;
        #[cfg(unix)]
        File::open(folder(&self.path))?.sync_all()?;
        Ok(stamp(&file.metadata()?))
    }

    /// Waits for the lock, which ends with the returned file or with the process.
    fn lock(&self) -> Result<File, ToolsetError> {
        let lock = || {
            let file = private().open(self.path.with_added_extension("lock"))?;
            file.lock()?;
            Ok(file)
        };
        lock().map_err(|error| self.io(error))
    }

    fn io(&self, source: io::Error) -> ToolsetError {
        let path = self.path.clone();
        ToolsetError::Io { path, source }
    }

    fn invalid(&self, line: usize, column: usize, what: &str) -> ToolsetError {
        ToolsetError::Invalid {
            path: self.path.clone(),
            line,
            column,
            what: what.to_owned(),
        }
    }
}

/// Returns how files are opened that are written: for the owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The inode changes with each write of ours, and the time with each of an editor.
fn stamp(metadata: &Metadata) -> Stamp {
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    (inode, metadata.modified().ok(), metadata.len())
}
