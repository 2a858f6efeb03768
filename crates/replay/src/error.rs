//! Why a recording cannot be replayed.

use crate::Capacity;

/// Why a recording cannot be replayed: names the file and the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be opened.
    #[error("{file}: {source}")]
    Open {
        /// The file, as given.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file cannot be read or decompressed.
    #[error("{file}:{line}: {source}")]
    Read {
        /// The file, as given.
        file: String,
        /// The line that cannot be read, counted from 1.
        line: u64,
        /// The error of the system or the decoder.
        source: std::io::Error,
    },
    /// A line is invalid.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file, as given.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The problem, and what is expected.
        problem: String,
    },
    /// A capacity in bytes needs keys with sizes.
    #[error(
        "a capacity of {0} is in bytes, but the recorded keys have no sizes: give a number of entries"
    )]
    NoSizes(Capacity),
    /// The cache cannot be built.
    #[error("the cache does not start: {0}")]
    Cache(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ReplayError {
    pub(crate) fn cache(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Cache(source.into())
    }
}
