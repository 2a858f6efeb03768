//! The records of a log about itself.

use serde::{Deserialize, Serialize};

/// A record of the log about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Note {
    /// The first line of each file.
    File {
        format: String,
        version: u32,
        /// The random name of the log, the same in all its files.
        log: String,
        /// The number of the file, from 1.
        file: u64,
        hash_with: String,
    },
    /// A process opened the log.
    Opened { version: String },
    /// A process closed the log.
    Closed {},
    /// Calls without a record, because the file could not be written.
    Lost { records: u64 },
    /// Refusals of unknown tools without a record, because of their rate.
    Suppressed { records: u64 },
    /// The files before `oldest` are deleted as configured.
    Retention { oldest: u64 },
}

/// The format in the first line of a file.
pub(crate) const FORMAT: &str = "callward-audit";
/// The version of the format.
pub(crate) const VERSION: u32 = 2;

impl Note {
    /// Returns the members of the record.
    pub(crate) fn members(&self) -> String {
        let mut object = serde_json::to_string(self).unwrap_or_default();
        object.pop();
        object.split_off(1)
    }
}
