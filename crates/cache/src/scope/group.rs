//! Which replica sets share state.

use std::fmt;
use std::sync::Arc;

use callward_core::ReplicaSetId;
use serde::{Deserialize, Serialize};

/// Which other replica sets may read and change the state of a replica set.
///
/// A write invalidates what was read from any set of its group. In configuration: `"shared"`,
/// `"own"`, or any other text as the name of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StateGroup {
    /// All sets without another group. Default: servers often share a folder, a database or a
    /// browser.
    #[default]
    Shared,
    /// None: only this set's own tools read and change its state.
    Own,
    /// The sets that name the same group.
    #[serde(untagged)]
    Named(Arc<str>),
}

/// One group of replica sets that share state; a set with its own state is its only member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    Shared,
    Own(ReplicaSetId),
    Named(Arc<str>),
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("the shared state"),
            Self::Own(set) => write!(f, "the state of `{set}`"),
            Self::Named(name) => write!(f, "the state `{name}`"),
        }
    }
}
