//! The events of affinity.

use std::fmt;
use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use serde::{Deserialize, Serialize, Serializer};

use super::{KeyDigest, KeyKind};

/// Gets the events of affinity.
///
/// Called on the path of the call that set or ended an affinity, with no lock held: an observer
/// must not block, be slow or panic. A call whose key stays where it is tells nothing.
pub trait AffinityObserver: fmt::Debug + Send + Sync + 'static {
    /// A key has a server from now on: it is new, or its server before was lost.
    fn on_set(&self, set: &AffinitySet) {
        let _ = set;
    }

    /// A key has lost its server. This is noticed at its next call, or when other keys come.
    fn on_expired(&self, expired: &AffinityExpired) {
        let _ = expired;
    }
}

/// A key has a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AffinitySet {
    /// Of which kind the key is.
    #[serde(rename = "by")]
    pub kind: KeyKind,
    /// What stands for the key; never the name of a session or user, nor an argument.
    pub key: KeyDigest,
    /// In which replica set.
    pub set: ReplicaSetId,
    /// Which server.
    pub server: ServerId,
    /// For how long, if no other call comes.
    #[serde(rename = "ttl_ms", serialize_with = "millis")]
    pub ttl: Duration,
}

/// A key has lost its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AffinityExpired {
    /// Of which kind the key is.
    #[serde(rename = "by")]
    pub kind: KeyKind,
    /// What stands for the key; never the name of a session or user, nor an argument.
    pub key: KeyDigest,
    /// In which replica set.
    pub set: ReplicaSetId,
    /// Which server it had.
    pub server: ServerId,
    /// Why it has it no more.
    #[serde(rename = "reason")]
    pub cause: ExpiryCause,
}

/// Why a key has lost its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExpiryCause {
    /// It had no call for as long as keys are remembered.
    Ttl,
    /// The server left the replica set.
    Removed,
    /// The server is drained.
    Draining,
    /// The server cannot be reached.
    Unreachable,
    /// There were too many keys, and this one was not used for long.
    Capacity,
}

impl ExpiryCause {
    /// Returns the word used in events and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ttl => "ttl",
            Self::Removed => "removed",
            Self::Draining => "draining",
            Self::Unreachable => "unreachable",
            Self::Capacity => "capacity",
        }
    }
}

impl fmt::Display for ExpiryCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

fn millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
