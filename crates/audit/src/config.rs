//! What is asked of the log.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callward_core::InvalidConfig;
use callward_core::redact::Redactor;

use crate::AuditKey;

/// Where records go, when files are changed, and what happens where a record cannot be written.
///
/// | setting | default |
/// | --- | --- |
/// | [`open_world_path`](Self::with_open_world_path) | `audit.open-world.jsonl` beside an `audit.jsonl` |
/// | [`max_bytes`](Self::with_max_bytes) | 64 MiB a file |
/// | [`max_age`](Self::with_max_age) | a new file every 24 h |
/// | [`keep_files`](Self::with_keep_files) | all of them |
/// | [`fsync`](Self::with_fsync) | every second |
/// | [`on_full`](Self::with_on_full) | calls wait for room |
/// | [`on_failure`](Self::with_on_failure) | calls that need a full record are refused |
/// | [`queue`](Self::with_queue) | 4096 places |
/// | [`arguments`](Self::with_arguments), [`results`](Self::with_results) | written, secrets left out |
/// | [`redactor`](Self::with_redactor) | the default names, 64 KiB a text |
/// | [`key`](Self::with_key) | none: anybody can work out the hashes |
#[derive(Clone)]
#[non_exhaustive]
pub struct AuditConfig {
    /// The file that records are appended to.
    pub path: PathBuf,
    /// The file for calls that may meet things outside their server's control.
    pub open_world_path: PathBuf,
    /// From this size on a file is closed and the next one begun.
    pub max_bytes: u64,
    /// From this age on too.
    pub max_age: Option<Duration>,
    /// So many closed files are kept; `None` keeps all.
    pub keep_files: Option<u64>,
    /// When the system is told to bring records to the disk.
    pub fsync: Fsync,
    /// What happens when no more records can wait.
    pub on_full: OnFull,
    /// What happens when a file cannot be written.
    pub on_failure: OnFailure,
    /// So many records may wait. One takes a place, and one more for each 16 KiB of what it holds.
    pub queue: usize,
    /// How a full record holds the arguments.
    pub arguments: Bodies,
    /// How a full record holds the result.
    pub results: Bodies,
    /// What is left out of arguments, results and messages, and how long they may be.
    pub redactor: Redactor,
    /// Makes each hash one that only the holder of the key can work out.
    pub key: Option<AuditKey>,
}

/// When the system is told to bring what was written to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fsync {
    /// Before the caller gets its answer: what somebody was answered is on the disk.
    EveryRecord,
    /// This long after a record at the latest. A machine that stops loses that much, a process that is
    /// killed at most a second and 1,000 records: with [`OnFull::Block`] answers wait while more are not
    /// written.
    Interval(Duration),
    /// Whenever the system likes. A process that is killed loses no more than with an interval.
    Never,
}

/// What happens when so many records wait that there is no room for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// The call waits for a place before it is sent, at most until its deadline.
    #[default]
    Block,
    /// The call goes on, and its record is dropped and counted.
    Drop,
}

/// What happens to calls while a file cannot be written: the disk is full, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// Calls that need a full record are refused before they are sent. Those that need a partial one
    /// go on; their records are counted as failed.
    #[default]
    FailClosed,
    /// Every call goes on; records are counted as failed.
    FailOpen,
}

/// How a full record holds arguments or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Bodies {
    /// As JSON, with what stands under the names of secrets left out.
    #[default]
    Redacted,
    /// Their size, and a hash to compare with: of their bytes, with the log's key if it has one.
    Digest,
    /// Their size only.
    Omitted,
}

impl AuditConfig {
    /// The default for [`max_bytes`](Self::max_bytes): 64 MiB.
    pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
    /// The default for [`max_age`](Self::max_age): a day.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
    /// The default for [`queue`](Self::queue).
    pub const DEFAULT_QUEUE: usize = 4096;
    /// How long a text may be by default, in bytes: 64 KiB.
    pub const DEFAULT_MAX_TEXT: usize = 64 << 10;
    /// The least for [`max_bytes`](Self::max_bytes): 4 KiB.
    pub const LEAST_MAX_BYTES: u64 = 4 << 10;

    /// Takes the path; everything else has its default.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            open_world_path: Self::open_world_beside(&path),
            path,
            max_bytes: Self::DEFAULT_MAX_BYTES,
            max_age: Some(Self::DEFAULT_MAX_AGE),
            keep_files: None,
            fsync: Fsync::default(),
            on_full: OnFull::default(),
            on_failure: OnFailure::default(),
            queue: Self::DEFAULT_QUEUE,
            arguments: Bodies::default(),
            results: Bodies::default(),
            redactor: Redactor::new(Redactor::DEFAULT_NAMES, Self::DEFAULT_MAX_TEXT),
            key: None,
        }
    }

    /// Returns the path for open-world calls that goes with a path: `audit.open-world.jsonl` with
    /// `audit.jsonl`.
    #[must_use]
    pub fn open_world_beside(path: &Path) -> PathBuf {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(".open-world");
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    }

    /// Sets the file for open-world calls. With the same path as the other there is one file.
    #[must_use]
    pub fn with_open_world_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.open_world_path = path.into();
        self
    }

    /// Sets from which size on the next file is begun.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets from which age on the next file is begun; `None` for never.
    #[must_use]
    pub fn with_max_age(mut self, age: impl Into<Option<Duration>>) -> Self {
        self.max_age = age.into();
        self
    }

    /// Sets how many closed files are kept beside the one that is written; `None` for all. The log
    /// itself tells which were removed.
    #[must_use]
    pub fn with_keep_files(mut self, files: impl Into<Option<u64>>) -> Self {
        self.keep_files = files.into();
        self
    }

    /// Sets when records are brought to the disk.
    #[must_use]
    pub fn with_fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Sets what happens when no more records can wait.
    #[must_use]
    pub fn with_on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Sets what happens when a file cannot be written.
    #[must_use]
    pub fn with_on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sets how many records may wait.
    #[must_use]
    pub fn with_queue(mut self, places: usize) -> Self {
        self.queue = places;
        self
    }

    /// Sets how full records hold the arguments.
    #[must_use]
    pub fn with_arguments(mut self, bodies: Bodies) -> Self {
        self.arguments = bodies;
        self
    }

    /// Sets how full records hold the result.
    #[must_use]
    pub fn with_results(mut self, bodies: Bodies) -> Self {
        self.results = bodies;
        self
    }

    /// Sets what is left out of texts, and how long they may be.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Sets the key that hashes are made with.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Option<AuditKey>>) -> Self {
        self.key = key.into();
        self
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self.path.file_name().is_none() {
            return Err(InvalidConfig::new("path", "expected the path of a file"));
        }
        if self.open_world_path.file_name().is_none() {
            let reason = "expected the path of a file";
            return Err(InvalidConfig::new("open_world_path", reason));
        }
        if self.max_bytes < Self::LEAST_MAX_BYTES {
            return Err(InvalidConfig::new("max_bytes", "expected 4 KiB or more"));
        }
        if self.max_age.is_some_and(|age| age < LEAST_AGE) {
            return Err(InvalidConfig::new("max_age", "expected 1 s or more"));
        }
        if self.keep_files == Some(0) {
            let reason =
                "expected 1 or more: a file that is removed when it is closed is no record";
            return Err(InvalidConfig::new("keep_files", reason));
        }
        if self.queue == 0 || u32::try_from(self.queue).is_err() {
            return Err(InvalidConfig::new(
                "queue",
                "expected 1 to 4294967295 places",
            ));
        }
        match self.fsync {
            Fsync::Interval(time) if time.is_zero() || time > MOST_INTERVAL => Err(
                InvalidConfig::new("fsync", "expected more than zero, and at most an hour"),
            ),
            _ => Ok(()),
        }
    }
}

/// A shorter age would make a file for each record.
const LEAST_AGE: Duration = Duration::from_secs(1);
/// The longest time between two times that records are brought to the disk.
const MOST_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Every second.
impl Default for Fsync {
    fn default() -> Self {
        Self::Interval(Duration::from_secs(1))
    }
}

impl fmt::Debug for AuditConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditConfig")
            .field("path", &self.path)
            .field("open_world_path", &self.open_world_path)
            .field("max_bytes", &self.max_bytes)
            .field("max_age", &self.max_age)
            .field("keep_files", &self.keep_files)
            .field("fsync", &self.fsync)
            .field("on_full", &self.on_full)
            .field("on_failure", &self.on_failure)
            .field("queue", &self.queue)
            .field("arguments", &self.arguments)
            .field("results", &self.results)
            .field("is_keyed", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_for_open_world_calls_stands_beside_the_other() {
        for (path, beside) in [
            ("audit.jsonl", "audit.open-world.jsonl"),
            ("/var/log/a.b.jsonl", "/var/log/a.b.open-world.jsonl"),
            ("audit", "audit.open-world"),
        ] {
            assert_eq!(AuditConfig::new(path).open_world_path, Path::new(beside));
        }
    }

    #[test]
    fn each_setting_that_makes_no_sense_is_named() {
        let plain = || AuditConfig::new("a.jsonl");
        assert!(plain().validate().is_ok());
        for (config, field) in [
            (AuditConfig::new("/"), "path"),
            (plain().with_open_world_path(".."), "open_world_path"),
            (plain().with_max_bytes(10), "max_bytes"),
            (plain().with_max_age(Duration::ZERO), "max_age"),
            (plain().with_keep_files(0), "keep_files"),
            (plain().with_queue(0), "queue"),
            (plain().with_fsync(Fsync::Interval(Duration::ZERO)), "fsync"),
        ] {
            assert_eq!(config.validate().unwrap_err().field(), field);
        }
    }
}
