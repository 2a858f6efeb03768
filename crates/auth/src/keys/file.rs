//! The file of keys: read, and changed by one process at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use callward_core::is_invisible;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::entry::{KeyEntry, NewKey, Timestamp};
use super::secret::{KeyHash, Secret};
use crate::authenticator::KEY_PREFIX;

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// Why a file of keys cannot be read or changed. No error contains anything of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The system refuses.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Other users may read or write the file.
    #[error(
        "{path}: other users may read or write this file (mode {mode:03o}); run `chmod 600 {path}`",
        path = .path.display()
    )]
    Shared {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is not a file of keys.
    #[error("{}:{line}: expected the keys as `callward keys` writes them: {what}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A valid key has this name already.
    #[error("a key is called `{0}` already; revoke it, or choose another name")]
    Taken(String),
    /// A name, role or scope cannot be used.
    #[error(
        "{0} is not valid: expected 1 to 128 characters without spaces, and no key in place of a name"
    )]
    Word(&'static str),
    /// No key has this name or id.
    #[error("no key is called so; `callward keys list` shows the keys")]
    NoSuchKey,
    /// The system gives no random bits.
    #[error("the system gives no random bits")]
    NoRandomBits,
}

/// A file of keys, with mode 0600. Beside it are `NAME.lock`, which holds the lock of a change, and
/// `NAME.used`, which has the last use of each key.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    keys: Vec<KeyEntry>,
}

/// What of a file changes whenever its content or its mode does.
pub(super) type Stamp = (u64, i64, i64, u64);

impl KeyFile {
    /// Names a file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all keys, in the order of their creation, also those that are not valid any more;
    /// none if there is no file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the file cannot be read, others may read it, or it has no keys.
    pub fn list(&self) -> Result<Vec<KeyEntry>, KeyError> {
        Ok(self.read()?.map(|(keys, _)| keys).unwrap_or_default())
    }

    /// Returns when each key was last used, to the minute or so, by id. This is only for people:
    /// where it cannot be read, it is empty.
    #[must_use]
    pub fn last_used(&self) -> BTreeMap<String, Timestamp> {
        let text = std::fs::read(self.path.with_added_extension("used")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Creates a key, and the file if there is none. Its secret is not stored.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a name cannot be used, or the file cannot be read or written.
    pub fn create(&self, new: NewKey, now: SystemTime) -> Result<(Secret, KeyEntry), KeyError> {
        let is_bad = |word: &String| !is_word(word);
        let wrong = match &new.scopes {
            _ if is_bad(&new.name) => Some("the name"),
            _ if new.roles.iter().any(is_bad) => Some("a role"),
            Some(scopes) if scopes.iter().any(is_bad) => Some("a scope"),
            _ => None,
        };
        if let Some(what) = wrong {
            return Err(KeyError::Word(what));
        }
        let secret = Secret::random()?;
        let sha256 = KeyHash::of_key(secret.expose()).ok_or(KeyError::NoRandomBits)?;
        let entry = KeyEntry {
            id: sha256.id(),
            name: new.name,
            sha256,
            roles: new.roles,
            scopes: new.scopes,
            created: Timestamp::new(now),
            expires: new.expires.map(Timestamp::new),
            revoked: None,
        };
        self.change(|keys| {
            let is_taken = |key: &KeyEntry| {
                key.id == entry.name || (key.name == entry.name && key.revoked.is_none())
            };
            if keys.iter().any(is_taken) {
                return Err(KeyError::Taken(entry.name.clone()));
            }
            keys.push(entry.clone());
            Ok(())
        })?;
        Ok((secret, entry))
    }

    /// Revokes the key with this id, or else the valid one with this name. One that is revoked
    /// already stays as it is.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is none, or the file cannot be read or written.
    pub fn revoke(&self, name: &str, now: SystemTime) -> Result<KeyEntry, KeyError> {
        self.change(|keys| {
            // the one that is not revoked comes first
            let found = keys
                .iter_mut()
                .filter(|key| key.is_called(name))
                .min_by_key(|key| (key.id != name, key.revoked.is_some()))
                .ok_or(KeyError::NoSuchKey)?;
            found.revoked.get_or_insert_with(|| Timestamp::new(now));
            Ok(found.clone())
        })
    }

    /// Reads the file; `None` if there is none.
    pub(super) fn read(&self) -> Result<Option<(Vec<KeyEntry>, Stamp)>, KeyError> {
        // to open a pipe would wait for who writes into it
        if std::fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Err(self.invalid(1, "this is not a regular file"));
        }
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io_at(&self.path))?,
        };
        let metadata = file.metadata().map_err(io_at(&self.path))?;
        let mode = mode(&metadata);
        if mode & 0o077 != 0 {
            let path = self.path.clone();
            return Err(KeyError::Shared { path, mode });
        }
        let mut text = Vec::new();
        let mut limited = file.take(MAX_BYTES + 1);
        limited.read_to_end(&mut text).map_err(io_at(&self.path))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(self.invalid(1, "it has more than 16 MiB"));
        }
        // the parser's message may quote the file, and a key may have been pasted into it
        let content: Content = serde_json::from_slice(&text)
            .map_err(|error| self.invalid(error.line(), "this is not as expected"))?;
        let count = content.keys.len();
        let ids: BTreeSet<_> = content.keys.iter().map(|key| &key.id).collect();
        let hashes: BTreeSet<_> = content.keys.iter().map(|key| key.sha256).collect();
        if ids.len() < count || hashes.len() < count {
            return Err(self.invalid(1, "a key is there twice"));
        }
        Ok(Some((content.keys, stamp(&metadata))))
    }

    /// Returns the stamp of the file as it is now.
    pub(super) fn stamp(&self) -> io::Result<Stamp> {
        std::fs::metadata(&self.path).map(|metadata| stamp(&metadata))
    }

    /// Adds times of last use to those that are written; the later one counts.
    pub(super) fn add_used(&self, used: BTreeMap<String, Timestamp>) -> Result<(), KeyError> {
        let _lock = self.lock()?;
        let written = self.last_used();
        let mut all = written.clone();
        for (id, time) in used {
            let last = all.entry(id).or_insert(time);
            *last = time.max(*last);
        }
        match all == written {
            true => Ok(()),
            false => write(&self.path.with_added_extension("used"), &all),
        }
    }

    /// Reads the file, changes the keys and writes them, while no other process does.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<KeyEntry>) -> Result<T, KeyError>,
    ) -> Result<T, KeyError> {
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        let done = change(&mut keys)?;
        write(&self.path, &Content { keys })?;
        Ok(done)
    }

    /// Waits for the lock, which ends with the returned file.
    fn lock(&self) -> Result<File, KeyError> {
        let path = self.path.with_added_extension("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let open = || {
            let file = options.open(&path)?;
            file.lock()?;
            Ok(file)
        };
        open().map_err(io_at(&path))
    }

    fn invalid(&self, line: usize, what: &'static str) -> KeyError {
        let path = self.path.clone();
        KeyError::Invalid { path, line, what }
    }
}

/// Writes a file whole: readers see the old one or the new one, also after a crash.
fn write(path: &Path, content: &impl Serialize) -> Result<(), KeyError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let whole = || {
        // a temporary file has mode 0600
        let mut file = NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, content)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    };
    whole().map_err(io_at(path))
}

/// Says which file an error is about.
pub(super) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> KeyError + use<> {
    let path = path.to_owned();
    |source| KeyError::Io { path, source }
}

fn is_word(word: &str) -> bool {
    let is_bad = |char: char| char.is_whitespace() || is_invisible(char);
    (1..=128).contains(&word.chars().count())
        && !word.contains(is_bad)
        && !word.starts_with(KEY_PREFIX)
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o777
}

#[cfg(not(unix))]
fn mode(_: &Metadata) -> u32 {
    0
}

/// The inode changes with each write, and the time of its change also with the mode.
#[cfg(unix)]
fn stamp(metadata: &Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let (seconds, nanos) = (metadata.ctime(), metadata.ctime_nsec());
    (metadata.ino(), seconds, nanos, metadata.len())
}

#[cfg(not(unix))]
fn stamp(metadata: &Metadata) -> Stamp {
    let written = metadata.modified().ok();
    let since = written.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let since = since.unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    (0, seconds, i64::from(since.subsec_nanos()), metadata.len())
}

#[cfg(test)]
mod tests;
