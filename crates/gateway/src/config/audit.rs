//! What is written down about calls, as it is written.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use callward::audit::{AuditConfig, Bodies, Fsync, OnFailure, OnFull};
use callward::core::AuditScope;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::units::{Size, duration, parse_duration};

/// `[audit]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    pub(crate) path: Option<PathBuf>,
    pub(crate) record: RecordName,
    pub(crate) open_world_path: Option<PathBuf>,
    pub(crate) max_bytes: Size,
    #[serde(deserialize_with = "duration")]
    pub(crate) max_age: Duration,
    pub(crate) keep_files: Option<u64>,
    #[serde(deserialize_with = "fsync")]
    pub(crate) fsync: Fsync,
    pub(crate) on_full: FullName,
    pub(crate) on_failure: FailureName,
    pub(crate) queue: usize,
    pub(crate) arguments: BodiesName,
    pub(crate) results: BodiesName,
    pub(crate) redact: Vec<String>,
    pub(crate) max_text: Size,
    pub(crate) key_file: Option<PathBuf>,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            path: None,
            record: RecordName::Mutating,
            open_world_path: None,
            max_bytes: Size(AuditConfig::DEFAULT_MAX_BYTES),
            max_age: AuditConfig::DEFAULT_MAX_AGE,
            keep_files: None,
            fsync: Fsync::default(),
            on_full: FullName::Block,
            on_failure: FailureName::FailClosed,
            queue: AuditConfig::DEFAULT_QUEUE,
            arguments: BodiesName::Redacted,
            results: BodiesName::Redacted,
            redact: Vec::new(),
            max_text: Size(AuditConfig::DEFAULT_MAX_TEXT as u64),
            key_file: None,
        }
    }
}

/// Which calls are recorded because of their effect.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordName {
    Destructive,
    Mutating,
    All,
}

impl From<RecordName> for AuditScope {
    fn from(name: RecordName) -> Self {
        match name {
            RecordName::Destructive => Self::Destructive,
            RecordName::Mutating => Self::Mutating,
            RecordName::All => Self::All,
        }
    }
}

/// Where calls go while there is no room for records.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FullName {
    Block,
    Drop,
}

impl From<FullName> for OnFull {
    fn from(name: FullName) -> Self {
        match name {
            FullName::Block => Self::Block,
            FullName::Drop => Self::Drop,
        }
    }
}

/// Where calls go while the log cannot be written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureName {
    FailClosed,
    FailOpen,
}

impl From<FailureName> for OnFailure {
    fn from(name: FailureName) -> Self {
        match name {
            FailureName::FailClosed => Self::FailClosed,
            FailureName::FailOpen => Self::FailOpen,
        }
    }
}

/// How full records hold arguments or results.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BodiesName {
    Redacted,
    Digest,
    Omitted,
}

impl From<BodiesName> for Bodies {
    fn from(name: BodiesName) -> Self {
        match name {
            BodiesName::Redacted => Self::Redacted,
            BodiesName::Digest => Self::Digest,
            BodiesName::Omitted => Self::Omitted,
        }
    }
}

/// Reads when records are brought to the disk: a word, or a time between two times.
fn fsync<'de, D: Deserializer<'de>>(from: D) -> Result<Fsync, D::Error> {
    struct WordOrTime;

    impl Visitor<'_> for WordOrTime {
        type Value = Fsync;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("\"every_record\", \"never\", or a duration such as \"1s\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Fsync, E> {
            match text {
                "every_record" => Ok(Fsync::EveryRecord),
                "never" => Ok(Fsync::Never),
                _ => match parse_duration(text) {
                    Ok(time) => Ok(Fsync::Interval(time)),
                    Err(_) => Err(E::custom(format!(
                        "expected \"every_record\", \"never\", or a duration such as \"1s\", found \
                         {text:?}"
                    ))),
                },
            }
        }
    }

    from.deserialize_any(WordOrTime)
}
