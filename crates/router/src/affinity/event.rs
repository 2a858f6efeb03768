//! The events of affinity.

use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use serde::{Serialize, Serializer};

use super::{KeyDigest, KeyKind};

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
    /// Why it lost it.
    #[serde(rename = "reason")]
    pub cause: ExpiryCause,
}

/// Why a key has lost its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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

fn millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
