//! Settings that contradict each other.

use std::fmt;

use callward_core::{InvalidConfig, ReplicaSetId, ServerId};

/// A stack that cannot be built, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Two servers of one replica set differ in a setting that the whole set shares.
    Conflict {
        /// The replica set.
        set: ReplicaSetId,
        /// The setting.
        what: &'static str,
    },
    /// A server cannot join a replica set that runs already, because it states something new about
    /// its tools that cannot change under calls.
    Running {
        /// The replica set.
        set: ReplicaSetId,
        /// What it says.
        what: &'static str,
    },
    /// Two servers have the same id.
    DuplicateServer(ServerId),
    /// The settings of a layer are invalid.
    Settings(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { set, what } => {
                write!(
                    f,
                    "servers of replica set `{set}` disagree about {what}; give all the same"
                )
            }
            Self::Running { set, what } => {
                write!(
                    f,
                    "calls of replica set `{set}` are running, and {what} cannot change under them; \
                     say it from the start, or remove the set's servers and let its calls end first"
                )
            }
            Self::DuplicateServer(id) => write!(f, "two servers are called `{id}`; rename one"),
            Self::Settings(fault) => f.write_str(fault),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<InvalidConfig> for BuildError {
    /// Wraps an invalid setting of a layer.
    fn from(fault: InvalidConfig) -> Self {
        Self::Settings(fault.to_string())
    }
}

impl BuildError {
    pub(crate) fn conflict(set: &ReplicaSetId, what: &'static str) -> Self {
        let set = set.clone();
        Self::Conflict { set, what }
    }

    /// Wraps an invalid setting of a server.
    pub(crate) fn of_server(id: &ServerId, fault: impl fmt::Display) -> Self {
        Self::Settings(format!("server `{id}`: {fault}"))
    }

    /// Takes a layer's own word on its settings, where the name of the setting does not say whose
    /// it is.
    pub(crate) fn of_the(whose: impl fmt::Display) -> impl FnOnce(InvalidConfig) -> Self {
        move |fault| Self::Settings(format!("{whose}: {fault}"))
    }
}
