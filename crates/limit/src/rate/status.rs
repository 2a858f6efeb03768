//! What can be read of the limits.

use std::fmt;

use callward_core::{ReplicaSetId, ToolName};

/// Which calls a rate limit is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RateSubject {
    /// All calls.
    InAll,
    /// The calls of one tool.
    Tool {
        /// The replica set that offers it.
        set: ReplicaSetId,
        /// Its name.
        tool: ToolName,
    },
}

impl fmt::Display for RateSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAll => f.write_str("all calls"),
            Self::Tool { set, tool } => write!(f, "{set}::{tool}"),
        }
    }
}

/// One rate limit at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RateStatus {
    /// Which calls it is for.
    pub subject: RateSubject,
    /// How many calls a minute it lets through.
    pub calls_per_minute: f64,
    /// How many calls wait.
    pub waiting: usize,
    /// How many calls waited and then passed.
    pub waited: u64,
    /// How many calls were refused.
    pub refused: u64,
}
