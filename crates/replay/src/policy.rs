//! The policies by name.

use std::str::FromStr;

use callward_core::{InvalidValue, words};

use crate::ours::Charge;
use crate::policies::{Belady, Queued, S3Fifo, Simulator, WTinyLfu};
use crate::{Capacity, KeyTrace, Ours, ReplayError};

words! {
    /// Decides which keys a cache keeps.
    #[non_exhaustive]
    Policy {
        /// Keeps nothing.
        None = "none",
        /// First in, first out.
        Fifo = "fifo",
        /// Least recently used.
        Lru = "lru",
        /// Least frequently used.
        Lfu = "lfu",
        /// Three FIFO queues.
        S3Fifo = "s3-fifo",
        /// A window, and admission by frequency.
        WTinyLfu = "w-tinylfu",
        /// The cache of this project.
        Callward = "callward",
        /// The optimum, with knowledge of the future. For entries of one size only.
        Belady = "belady",
        /// A cache that evicts by time only. Recorded keys have no times, so it evicts nothing.
        Ttl = "ttl",
    }
}

impl Policy {
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
            Self::Lfu => Box::new(Queued::lfu(amount)),
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

impl FromStr for Policy {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        Self::by_name(name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|one| one.as_str()).collect();
            InvalidValue::new(format!("expected one of {}", names.join(", ")))
        })
    }
}
