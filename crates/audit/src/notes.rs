//! What a log says of itself, between the records of calls.

use serde::{Deserialize, Serialize};

/// A record of the log about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Note {
    /// The first line of each file.
    File {
        format: String,
        version: u32,
        /// Names the log: the same in all its files.
        log: String,
        /// Counts the files of a log from 1.
        file: u64,
        hash_with: String,
    },
    /// A process began to write.
    Opened { version: String },
    /// A process ended in good order.
    Closed {},
    /// The line before broke off, because the process or the machine stopped while it was written.
    Repair {
        torn_bytes: u64,
        torn_sha256: String,
    },
    /// Something was wrong with the log when a process began to write.
    Fault { found: String },
    /// So many calls have no record, because the file could not be written for a while.
    Lost { records: u64 },
    /// So many refusals of calls to tools that do not exist have no record, because there were too many.
    Suppressed { records: u64 },
    /// Files before this one are removed, as the settings ask.
    Retention { oldest: u64 },
}

/// What the first line of a file says it is.
pub(crate) const FORMAT: &str = "callward-audit";
/// The version of the format.
pub(crate) const VERSION: u32 = 1;

impl Note {
    pub(crate) fn file(log: &str, file: u64, hash_with: &str) -> Self {
        Self::File {
            format: FORMAT.to_owned(),
            version: VERSION,
            log: log.to_owned(),
            file,
            hash_with: hash_with.to_owned(),
        }
    }

    /// Writes the inside of the record's object.
    pub(crate) fn body(&self) -> Vec<u8> {
        inside(serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Takes the braces of an object away.
pub(crate) fn inside(mut object: Vec<u8>) -> Vec<u8> {
    object.pop();
    if !object.is_empty() {
        object.remove(0);
    }
    object
}
