//! Why toolsets cannot be read or changed.

use std::io;
use std::path::PathBuf;

use crate::text::{InvalidText, Name};

/// Why toolsets cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsetError {
    /// The system refuses.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file has an error. It is left as it is.
    #[error("{}:{line}:{column}: {what}; correct the file, it is left as it is", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 if the error is of the whole file.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// There is no toolset of this name.
    #[error("no toolset is called `{0}`")]
    NoToolset(Name),
    /// A toolset has this name already.
    #[error("a toolset is called `{0}` already: choose another name")]
    Taken(Name),
    /// There is no such note.
    #[error("the tool has no such note in the toolset `{0}`")]
    NoNote(Name),
    /// There would be too many of something.
    #[error("{what} would be more than {max}: remove some first")]
    TooMany {
        /// What there would be too many of.
        what: &'static str,
        /// The most there may be.
        max: usize,
    },
    /// A text cannot be used.
    #[error(transparent)]
    Text(#[from] InvalidText),
}

impl ToolsetError {
    /// Returns `true` if it is about the file, which is the operator's: its path and content are
    /// not for agents.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Invalid { .. })
    }
}
