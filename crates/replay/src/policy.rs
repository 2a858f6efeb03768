//! The policies by name.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ours::Charge;
use crate::policies::{Belady, Fifo, Lfu, Lru, NoCache, S3Fifo, Simulator, Unbounded, WTinyLfu};
use crate::{Capacity, KeyTrace, Ours, ReplayError};

/// What decides which keys are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Keeps nothing.
    None,
    /// First in, first out.
    Fifo,
    /// Least recently used.
    Lru,
    /// Least frequently used.
    Lfu,
    /// Three queues, first in first out.
    S3Fifo,
    /// A window before a gate that lets in what is asked for more often.
    WTinyLfu,
    /// The cache of this project.
    Callward,
    /// The optimum, by looking ahead. For entries of one size only.
    Belady,
    /// A cache that only time empties, which recorded keys have none of: no bound.
    Ttl,
}

impl Policy {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Fifo,
        Self::Lru,
        Self::Lfu,
        Self::S3Fifo,
        Self::WTinyLfu,
        Self::Callward,
        Self::Belady,
        Self::Ttl,
    ];

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Lfu => "lfu",
            Self::S3Fifo => "s3-fifo",
            Self::WTinyLfu => "w-tinylfu",
            Self::Callward => "callward",
            Self::Belady => "belady",
            Self::Ttl => "ttl",
        }
    }

    /// Says whether the policy means anything under a capacity. The optimum by looking ahead is one
    /// for entries of one size; with sizes, finding it is a problem nobody solves in time.
    #[must_use]
    pub fn applies(self, capacity: Capacity) -> bool {
        !matches!((self, capacity), (Self::Belady, Capacity::Bytes(_)))
    }

    /// Builds the policy for a recording.
    pub(crate) fn build(
        self,
        capacity: Capacity,
        trace: &KeyTrace,
    ) -> Result<Box<dyn Simulator>, ReplayError> {
        let amount = capacity.amount();
        Ok(match self {
            Self::None => Box::new(NoCache::new()),
            Self::Fifo => Box::new(Fifo::new(amount)),
            Self::Lru => Box::new(Lru::new(amount)),
            Self::Lfu => Box::new(Lfu::new(amount)),
            Self::S3Fifo => Box::new(S3Fifo::new(amount)),
            Self::WTinyLfu => Box::new(WTinyLfu::new(amount, entries(capacity, trace)?)),
            Self::Callward => Box::new(Ours::new(capacity, trace.largest())?),
            Self::Belady => Box::new(Belady::new(amount, trace.keys())),
            Self::Ttl => Box::new(Unbounded::new()),
        })
    }
}

/// Returns how many entries of a recording have room, about.
fn entries(capacity: Capacity, trace: &KeyTrace) -> Result<u64, ReplayError> {
    Ok(match capacity {
        Capacity::Entries(entries) => entries,
        Capacity::Bytes(bytes) => bytes / Charge::ask()?.of(trace.mean_size()),
    })
}

/// A name that no policy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {}", Policy::ALL.map(Policy::as_str).join(", "))]
#[non_exhaustive]
pub struct UnknownPolicy;

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let mut all = Self::ALL.into_iter();
        all.find(|policy| policy.as_str() == name)
            .ok_or(UnknownPolicy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own_and_is_found_by_it() {
        for policy in Policy::ALL {
            assert_eq!(policy.as_str().parse(), Ok(policy));
        }
        let error = "LRU".parse::<Policy>().unwrap_err().to_string();
        assert!(error.ends_with("callward, belady, ttl"), "{error}");
    }
}
