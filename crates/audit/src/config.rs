//! Settings.

use std::path::PathBuf;
use std::time::Duration;

use callward_core::InvalidConfig;
use callward_core::human::{duration, parse_duration, size};
use callward_core::redact::Redactor;
use serde::{Deserialize, Serialize};

use crate::AuditKey;
use crate::log::before_extension;

/// Settings of an [`AuditLog`](crate::AuditLog).
///
/// | setting | default |
/// | --- | --- |
/// | [`open_world_path`](Self::open_world_path) | `audit.open-world.jsonl` beside an `audit.jsonl` |
/// | [`max_bytes`](Self::max_bytes) | 64 MiB a file |
/// | [`max_age`](Self::max_age) | a new file every 24 h |
/// | [`keep_files`](Self::keep_files) | all of them |
/// | [`fsync`](Self::fsync) | every second |
/// | [`on_full`](Self::on_full) | calls wait |
/// | [`on_failure`](Self::on_failure) | calls that need a full record are refused |
/// | [`queue`](Self::queue) | 4096 permits |
/// | [`arguments`](Self::arguments), [`results`](Self::results) | redacted |
/// | [`redactor`](Self::redactor) | the default names, texts of 64 KiB |
/// | [`key`](Self::key) | none |
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuditConfig {
    /// The file that records are appended to.
    #[serde(skip)]
    pub path: PathBuf,
    /// The file for open-world calls. The same path as the main one gives one file.
    #[serde(skip)]
    pub open_world_path: PathBuf,
    /// The size at which a file is rotated, at least 4 KiB.
    #[serde(with = "size")]
    pub max_bytes: u64,
    /// The age at which a file is rotated; `None` for never.
    #[serde(with = "duration")]
    pub max_age: Option<Duration>,
    /// The number of closed files that are kept; `None` keeps all. The log records each deletion.
    pub keep_files: Option<u64>,
    /// When records are synced to disk.
    pub fsync: Fsync,
    /// The reaction to a full queue.
    pub on_full: OnFull,
    /// The reaction to a file that cannot be written.
    pub on_failure: OnFailure,
    /// The permits of the queue. A record takes one, and one more per 16 KiB of content.
    #[serde(skip)]
    pub queue: u32,
    /// The form of the arguments in full records.
    pub arguments: Bodies,
    /// The form of the result in full records.
    pub results: Bodies,
    /// Redacts arguments, results and messages, and limits their length.
    #[serde(skip)]
    pub redactor: Redactor,
    /// The key of the hashes.
    #[serde(skip)]
    pub key: Option<AuditKey>,
}

/// When records are synced to disk. As a text, `every_record`, `never`, or the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fsync {
    /// Before the answer: the record of every answered call is on disk.
    EveryRecord,
    /// Never explicitly. SIGKILL loses as much as with an interval.
    Never,
    /// At most this long after a record. A crash of the machine loses that time; SIGKILL loses at
    /// most one second and 1,000 records, since with [`OnFull::Block`] answers wait for the writer.
    #[serde(untagged, with = "duration")]
    Interval(Duration),
}

/// The reaction to a full queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFull {
    /// The call waits before it is sent, at most until its deadline.
    #[default]
    Block,
    /// The call proceeds; its record is dropped and counted.
    Drop,
}

/// The reaction to a file that cannot be written, such as on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailure {
    /// Calls that need a full record are refused before they are sent; other calls proceed.
    #[default]
    FailClosed,
    /// All calls proceed; lost records are counted.
    FailOpen,
}

/// The form of arguments or a result in a full record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Bodies {
    /// As JSON, with secrets redacted.
    #[default]
    Redacted,
    /// Their size and hash.
    Digest,
    /// Their size only.
    Omitted,
}

impl AuditConfig {
    /// The default limit on texts, in bytes: 64 KiB.
    pub const DEFAULT_MAX_TEXT: usize = 64 << 10;
    /// Creates the default settings for a path.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            open_world_path: before_extension(&path, ".open-world"),
            path,
            max_bytes: 64 << 20,
            max_age: Some(Duration::from_secs(24 * 60 * 60)),
            keep_files: None,
            fsync: Fsync::Interval(Duration::from_secs(1)),
            on_full: OnFull::default(),
            on_failure: OnFailure::default(),
            queue: 4096,
            arguments: Bodies::default(),
            results: Bodies::default(),
            redactor: Redactor::new(Redactor::DEFAULT_NAMES.split(' '), Self::DEFAULT_MAX_TEXT),
            key: None,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let is_file = |path: &PathBuf| path.file_name().is_some();
        let is_interval = |time: Duration| !time.is_zero() && time <= MAX_INTERVAL;
        let fsync = !matches!(self.fsync, Fsync::Interval(time) if !is_interval(time));
        let max_age = self.max_age.is_none_or(|age| age >= Duration::from_secs(1));
        let file = "expected the path of a file";
        #[rustfmt::skip]
        let rules = [
            (is_file(&self.path), "path", file),
            (is_file(&self.open_world_path), "open_world_path", file),
            (self.max_bytes >= 4 << 10, "max_bytes", "expected 4 KiB or more"),
            (max_age, "max_age", "expected 1 s or more"),
            (self.keep_files != Some(0), "keep_files", "expected 1 or more"),
            (self.queue > 0, "queue", "expected 1 permit or more"),
            (fsync, "fsync", "expected more than zero, and at most an hour"),
        ];
        let broken = rules.into_iter().find(|(holds, ..)| !holds);
        broken.map_or(Ok(()), |(_, field, reason)| {
            Err(InvalidConfig::new(field, reason))
        })
    }
}

/// The longest interval between two syncs.
const MAX_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// A log at `audit.jsonl`.
impl Default for AuditConfig {
    fn default() -> Self {
        Self::new("audit.jsonl")
    }
}

impl TryFrom<String> for Fsync {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), parse_duration(&text)) {
            ("every_record", _) => Ok(Self::EveryRecord),
            ("never", _) => Ok(Self::Never),
            (_, Ok(time)) => Ok(Self::Interval(time)),
            (_, Err(_)) => Err(format!(
                "expected \"every_record\", \"never\", or a duration such as \"1s\", found {text:?}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_setting_is_named() {
        type Spoil = fn(&mut AuditConfig);
        let rows: [(&str, Spoil); 7] = [
            ("path", |config| config.path = "/".into()),
            ("open_world_path", |config| {
                config.open_world_path = "..".into();
            }),
            ("max_bytes", |config| config.max_bytes = 10),
            ("max_age", |config| config.max_age = Some(Duration::ZERO)),
            ("keep_files", |config| config.keep_files = Some(0)),
            ("queue", |config| config.queue = 0),
            ("fsync", |config| {
                config.fsync = Fsync::Interval(Duration::ZERO);
            }),
        ];
        for (field, spoil) in rows {
            let mut config = AuditConfig::new("a.jsonl");
            assert!(config.validate().is_ok());
            spoil(&mut config);
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }

    #[test]
    fn fsync_is_a_word_or_an_interval() {
        let second = Fsync::Interval(Duration::from_secs(1));
        let all = [Fsync::EveryRecord, Fsync::Never, second];
        let text = r#"["every_record","never","1s"]"#;
        assert_eq!(serde_json::to_string(&all).unwrap(), text);
        assert_eq!(serde_json::from_str::<[Fsync; 3]>(text).unwrap(), all);
    }
}
