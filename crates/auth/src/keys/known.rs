//! The keys that a running gateway knows.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use callward_core::Caller;

use super::entry::{KeyEntry, Timestamp};
use super::file::{KeyError, KeyFile, Stamp, io_at};
use super::secret::KeyHash;
use crate::{Authenticated, Reason, Refusal, VerifyToken};

/// The keys of a file, as they were when it was last read. A look-up takes no lock and reads no
/// file; [`refresh`](Self::refresh) is called now and then, away from requests.
pub struct Keys {
    file: KeyFile,
    table: ArcSwap<Table>,
}

#[derive(Default)]
struct Table {
    /// `None` if there is no file yet.
    stamp: Option<Stamp>,
    /// By hash. The time of a look-up reveals something of hashes, and no one can make a key for a
    /// hash that is nearly right: no comparison needs constant time.
    keys: HashMap<KeyHash, Known>,
}

struct Known {
    id: String,
    caller: Arc<Caller>,
    is_revoked: bool,
    expires: Option<SystemTime>,
    /// In seconds since 1970; 0 if this process has not seen it.
    used: Arc<AtomicU64>,
}

impl Keys {
    /// Reads a file. One that does not exist has no keys yet.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the file cannot be read, others may read it, or it has no keys.
    pub fn open(file: KeyFile) -> Result<Self, KeyError> {
        let keys = Self {
            file,
            table: ArcSwap::default(),
        };
        if let Some(found) = keys.file.read()? {
            keys.take(found);
        }
        Ok(keys)
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &KeyFile {
        &self.file
    }

    /// Returns how many keys there are, also those that are not valid any more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.load().keys.len()
    }

    /// Returns `true` if there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the file if it has changed, and returns whether it has.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if it cannot be read, or was removed: the keys stay as they were.
    pub fn refresh(&self) -> Result<bool, KeyError> {
        let known = self.table.load().stamp;
        match self.file.stamp() {
            Ok(stamp) if known == Some(stamp) => return Ok(false),
            Err(error) if known.is_none() && error.kind() == ErrorKind::NotFound => {
                return Ok(false);
            }
            Err(error) => return Err(io_at(self.file.path())(error)),
            Ok(_) => {}
        }
        match self.file.read()? {
            Some(found) => self.take(found),
            None => return Err(io_at(self.file.path())(ErrorKind::NotFound.into())),
        }
        Ok(true)
    }

    fn take(&self, (entries, stamp): (Vec<KeyEntry>, Stamp)) {
        let old = self.table.load();
        let known = |entry: KeyEntry| {
            let used = old.keys.get(&entry.sha256).map(|known| known.used.clone());
            let known = Known {
                caller: Arc::new(entry.caller()),
                is_revoked: entry.revoked.is_some(),
                expires: entry.expires.map(Timestamp::time),
                used: used.unwrap_or_default(),
                id: entry.id,
            };
            (entry.sha256, known)
        };
        let keys = entries.into_iter().map(known).collect();
        let stamp = Some(stamp);
        self.table.store(Arc::new(Table { stamp, keys }));
    }

    /// Writes when keys were last used, if any was.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the file beside the keys cannot be written.
    pub fn save_used(&self) -> Result<(), KeyError> {
        let table = self.table.load();
        let used: BTreeMap<_, _> = table
            .keys
            .values()
            .map(|known| (&known.id, known.used.load(Ordering::Relaxed)))
            .filter(|(_, seconds)| *seconds > 0)
            .map(|(id, seconds)| (id.clone(), Timestamp::of_seconds(seconds)))
            .collect();
        match used.is_empty() {
            true => Ok(()),
            false => self.file.add_used(used),
        }
    }

    /// Returns whose key a text is at this time.
    ///
    /// # Errors
    ///
    /// [`Refusal`] unless it is a key: if it is unknown, revoked or expired.
    pub fn check(&self, text: &str, now: SystemTime) -> Result<Arc<Caller>, Refusal> {
        let hash = KeyHash::of_key(text).ok_or(Reason::UnknownKey)?;
        let table = self.table.load();
        let known = table.keys.get(&hash).ok_or(Reason::UnknownKey)?;
        if known.is_revoked {
            return Err(Reason::Revoked.into());
        }
        if known.expires.is_some_and(|end| now >= end) {
            return Err(Reason::Expired.into());
        }
        let seconds = Timestamp::new(now).seconds();
        // threads that share a key would else take the line from each other at each request
        if known.used.load(Ordering::Relaxed) != seconds {
            known.used.store(seconds, Ordering::Relaxed);
        }
        Ok(known.caller.clone())
    }
}

impl VerifyToken for Keys {
    fn verify(&self, token: &str, _: Option<IpAddr>) -> Authenticated {
        Authenticated::Now(self.check(token, Timestamp::now().time()))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("file", &self.file)
            .field("keys", &self.len())
            .finish()
    }
}
