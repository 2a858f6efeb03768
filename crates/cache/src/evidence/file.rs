//! The file that evidence is kept in, locked by one process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callward_core::{ReplicaSetId, ToolName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::estimator::ageing;
use super::registry::{Evidences, Subject, random_secret};
use super::tool::{SavedEvidence, ToolEvidence};
use crate::observed::Conduct;

/// A larger file is not read: 256 MiB. All that is remembered takes some 40 MiB.
const MAX_BYTES: u64 = 256 << 20;

const FORMAT: &str = "callward-evidence 2";

/// All evidence at one time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    format: String,
    secret: (u64, u64),
    /// When it was taken, in milliseconds since 1970.
    saved_ms: u64,
    /// The most recently used last.
    tools: Vec<(Subject, SavedEvidence)>,
    /// Files of earlier versions have none.
    #[serde(default)]
    observed: Vec<(ReplicaSetId, ToolName, Conduct)>,
}

/// A file that this process alone writes.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    /// Holds the lock until it is dropped; and only one snapshot is written at a time.
    lock: Mutex<File>,
}

impl Evidences {
    /// Reads the evidence kept in a file, aged by the time since, and keeps it there from now on.
    /// The file is made at the first [`save`](Self::save) if there is none; its directory has to
    /// exist.
    ///
    /// A file that is damaged or of another version is renamed to `….set-aside`, with a warning.
    ///
    /// # Errors
    ///
    /// If the file or its lock cannot be opened, read or renamed, or if another process holds it.
    pub(crate) fn open(path: &Path, odds: f64, wall: Duration) -> io::Result<Self> {
        let file = StateFile::lock(path)?;
        let Some(snapshot) = file.read()? else {
            let evidences = Self::with_secret(odds, random_secret(), Some(file));
            // its secret is kept, too
            evidences.common.changed.store(true, Ordering::Relaxed);
            return Ok(evidences);
        };
        let evidences = Self::with_secret(odds, snapshot.secret, Some(file));
        // a clock that was set back reduces no age
        let since = wall.saturating_sub(Duration::from_millis(snapshot.saved_ms));
        let (factor, now) = (ageing(since.as_secs_f64()), Instant::now());
        for (subject, saved) in snapshot.tools {
            let common = evidences.common.clone();
            let tool = ToolEvidence::restored(common, saved, factor, now);
            evidences.tools.lock().enter(&subject, || tool);
        }
        evidences.observers.restore(snapshot.observed);
        Ok(evidences)
    }

    /// Writes all evidence to its file if anything was observed since the last time. Returns
    /// whether it did; never if it is in memory only. Blocks the thread.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. The old one is then still there, and the next call tries
    /// again.
    pub(crate) fn save(&self, wall: Duration, now: Instant) -> io::Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let changed = &self.common.changed;
        let lock = file.lock.lock();
        let is_new = self.observers.take_changed();
        if !changed.swap(false, Ordering::Relaxed) && !is_new {
            return Ok(false);
        }
        let tools = self.all().into_iter();
        let tools = tools.map(|(subject, evidence)| (subject, evidence.save(now)));
        let saved_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let snapshot = Snapshot {
            format: FORMAT.to_owned(),
            secret: self.secret,
            saved_ms,
            tools: tools.collect(),
            observed: self.observers.saved(),
        };
        let text = serde_json::to_vec(&snapshot).map_err(io::Error::other);
        let written = text.and_then(|text| file.write(&text));
        if written.is_err() {
            changed.store(true, Ordering::Relaxed);
        }
        drop(lock);
        written.map(|()| true)
    }
}

impl StateFile {
    /// Takes the lock, in a file beside it.
    fn lock(path: &Path) -> io::Result<Self> {
        let lock_path = path.with_added_extension("lock");
        for path in [path, &lock_path] {
            // opening a pipe would wait for its other end
            let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
            if fs::metadata(path).is_ok_and(is_special) {
                let message = format!("{} is not a regular file", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
        let mut options = private();
        let lock = options.create(true).truncate(false).open(lock_path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                lock: Mutex::new(lock),
            }),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("another process holds it")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Reads the file; `None` if there is none that can be used.
    fn read(&self) -> io::Result<Option<Snapshot>> {
        let mut text = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(MAX_BYTES).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match decode(&text) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(damage) => {
                let aside = self.path.with_added_extension("set-aside");
                fs::rename(&self.path, &aside)?;
                tracing::warn!(
                    file = %self.path.display(), set_aside = %aside.display(), %damage,
                    "cannot use the file of cache evidence: starting without evidence"
                );
                Ok(None)
            }
        }
    }

    /// Writes a new file and puts it in the place of the old one, so that after a crash either is
    /// whole.
    fn write(&self, text: &[u8]) -> io::Result<()> {
        let new = self.path.with_added_extension("tmp");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private().create_new(true).open(&new)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// Opens a file for writing; only its owner may access a new one.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Reads the text of a file. Its writer replaces it whole, so that it is never cut.
///
/// # Errors
///
/// What is wrong with it, such as another version.
pub(super) fn decode(text: &[u8]) -> Result<Snapshot, String> {
    let snapshot: Snapshot = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match snapshot.format.as_str() {
        FORMAT => Ok(snapshot),
        other => Err(format!("it is {other:?}, not {FORMAT:?}")),
    }
}

/// Returns the wall-clock time since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "evidence ages while no process runs; nothing else here reads it"
)]
pub(crate) fn wall() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}
