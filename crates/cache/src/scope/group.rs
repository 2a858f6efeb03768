//! Which replica sets share state.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use callward_core::ReplicaSetId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which other replica sets may read and change the state of a replica set.
///
/// A write invalidates what was read from any set of its group. In configuration: `"shared"`,
/// `"own"`, or any other text as the name of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StateGroup {
    /// All sets without another group. Default: servers often share a folder, a database or a
    /// browser.
    #[default]
    Shared,
    /// None: only this set's own tools read and change its state.
    Own,
    /// The sets that name the same group.
    Named(Arc<str>),
}

impl FromStr for StateGroup {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "shared" => Self::Shared,
            "own" => Self::Own,
            name => Self::Named(name.into()),
        })
    }
}

impl fmt::Display for StateGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "shared",
            Self::Own => "own",
            Self::Named(name) => name,
        })
    }
}

impl Serialize for StateGroup {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StateGroup {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|never: Infallible| match never {})
    }
}

/// One group of replica sets that share state; a set with its own state is its only member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(super) state: StateGroup,
    pub(super) own: Option<ReplicaSetId>,
}

impl Group {
    pub(super) fn new(state: &StateGroup, set: &ReplicaSetId) -> Self {
        Self {
            state: state.clone(),
            own: (*state == StateGroup::Own).then(|| set.clone()),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.state, &self.own) {
            (StateGroup::Named(name), _) => write!(f, "the state `{name}`"),
            (_, Some(set)) => write!(f, "the state of `{set}`"),
            _ => f.write_str("the shared state"),
        }
    }
}
