//! The policies by name.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::ours::Charge;
use crate::policies::{Belady, Lfu, Queued, S3Fifo, Simulator, WTinyLfu};
use crate::{Capacity, KeyTrace, Ours, ReplayError};

/// Decides which keys a cache keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Three FIFO queues.
    S3Fifo,
    /// A window, and admission by frequency.
    #[serde(rename = "w-tinylfu")]
    WTinyLfu,
    /// The cache of this project.
    Callward,
    /// The optimum, with knowledge of the future. For entries of one size only.
    Belady,
    /// A cache that evicts by time only. Recorded keys have no times, so it evicts nothing.
    Ttl,
}

impl Policy {
    /// All policies, in display order.
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

    /// Returns `true` if the policy is defined for a capacity. Belady's optimum needs entries of
    /// one size: with sizes, finding it is NP-hard.
    #[must_use]
    pub fn applies(self, capacity: Capacity) -> bool {
        !matches!((self, capacity), (Self::Belady, Capacity::Bytes(_)))
    }

    pub(crate) fn build(
        self,
        capacity: Capacity,
        trace: &KeyTrace,
    ) -> Result<Box<dyn Simulator>, ReplayError> {
        let amount = capacity.amount();
        Ok(match self {
            Self::None => Box::new(Queued::fifo(0)),
            Self::Fifo => Box::new(Queued::fifo(amount)),
            Self::Lru => Box::new(Queued::lru(amount)),
            Self::Lfu => Box::new(Lfu::new(amount)),
            Self::S3Fifo => Box::new(S3Fifo::new(amount)),
            Self::WTinyLfu => {
                let entries = match capacity {
                    Capacity::Entries(entries) => entries,
                    Capacity::Bytes(bytes) => bytes / Charge::measure()?.of(trace.mean_size()),
                };
                Box::new(WTinyLfu::new(amount, entries))
            }
            Self::Callward => Box::new(Ours::new(capacity, trace.largest())?),
            Self::Belady => Box::new(Belady::new(amount, trace.keys())),
            Self::Ttl => Box::new(Queued::fifo(u64::MAX)),
        })
    }
}

/// An unknown name of a policy.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_an_error_lists_them() {
        for policy in Policy::ALL {
            assert_eq!(policy.as_str().parse(), Ok(policy));
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
        }
        let error = "LRU".parse::<Policy>().unwrap_err().to_string();
        assert!(error.ends_with("callward, belady, ttl"), "{error}");
    }
}
