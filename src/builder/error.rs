//! Settings that contradict each other.

use std::fmt;

use callward_core::{InvalidConfig, ReplicaSetId, ServerId};

/// A stack that cannot be built, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two servers of one replica set differ in a setting that the whole set shares.
    #[error("servers of replica set `{set}` disagree about {what}; give all the same")]
    Conflict {
        /// The replica set.
        set: ReplicaSetId,
        /// The setting.
        what: &'static str,
    },
    /// A server cannot join a replica set that runs already, because it states something new about
    /// its tools that cannot change under calls.
    #[error(
        "calls of replica set `{set}` are running, and {what} cannot change under them; say it from \
         the start, or remove the set's servers and let its calls end first"
    )]
    Running {
        /// The replica set.
        set: ReplicaSetId,
        /// What it says.
        what: &'static str,
    },
    /// Two servers have the same id.
    #[error("two servers are called `{0}`; rename one")]
    DuplicateServer(ServerId),
    /// The settings of a layer are invalid.
    #[error("{0}")]
    Settings(String),
}

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
