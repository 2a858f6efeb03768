//! Who is told where keys go.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_core::{ReplicaSetId, ServerId};

use super::{KeyDigest, KeyKind};
use crate::events::{AffinityNote, RouteEvent, RouteEvents};

/// Is told where keys go.
///
/// Called on the path of the call that set or ended an affinity, with no lock held: an observer must
/// not block, be slow or panic. A call whose key stays where it is tells nothing.
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AffinitySet {
    /// Of which kind the key is.
    pub kind: KeyKind,
    /// What stands for the key; never the name of a session or user, nor an argument.
    pub key: KeyDigest,
    /// In which replica set.
    pub set: ReplicaSetId,
    /// Which server.
    pub server: ServerId,
    /// For how long, if no other call comes.
    pub ttl: Duration,
}

/// A key has lost its server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AffinityExpired {
    /// Of which kind the key is.
    pub kind: KeyKind,
    /// What stands for the key; never the name of a session or user, nor an argument.
    pub key: KeyDigest,
    /// In which replica set.
    pub set: ReplicaSetId,
    /// Which server it had.
    pub server: ServerId,
    /// Why it has it no more.
    pub cause: ExpiryCause,
}

/// Whoever listens to the router's events is told, as of anything else that happens.
impl AffinityObserver for RouteEvents {
    fn on_set(&self, set: &AffinitySet) {
        self.tell(|| {
            let (kind, key) = (set.kind.as_str(), u64::from(set.key.get()));
            RouteEvent::AffinitySet {
                affinity: AffinityNote::new(set.set.clone(), kind, key, set.server.clone()),
                ttl: set.ttl,
            }
        });
    }

    fn on_expired(&self, expired: &AffinityExpired) {
        self.tell(|| {
            let (kind, key) = (expired.kind.as_str(), u64::from(expired.key.get()));
            let (set, server) = (expired.set.clone(), expired.server.clone());
            RouteEvent::AffinityExpired {
                affinity: AffinityNote::new(set, kind, key, server),
                reason: expired.cause.as_str(),
            }
        });
    }
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
    /// The server failed too often, and gets no calls for a while.
    Ejected,
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
            Self::Ejected => "ejected",
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
