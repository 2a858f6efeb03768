//! Why a recording cannot be replayed.

use crate::Capacity;

/// Why a recording cannot be replayed. Says which file, and which line of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be opened.
    #[error("{file}: {source}")]
    Open {
        /// The file, as it was named.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file cannot be read on, or cannot be unpacked.
    #[error("{file}:{line}: {source}")]
    Read {
        /// The file, as it was named.
        file: String,
        /// The line that could not be read, counted from 1.
        line: u64,
        /// What the system says, or the decoder.
        source: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file, as it was named.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it, and what is expected.
        problem: String,
    },
    /// A capacity in bytes says nothing about keys without sizes.
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
