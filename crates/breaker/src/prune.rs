//! What a map of breakers drops when there are too many.
//!
//! Names of tools come from servers, and a server may send any number of them: also of tools that
//! fail. So the map has a bound, and what it loses at the bound is what means least.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;

use crate::circuit::Reading;
use crate::{BreakerState, Circuit};

/// How little would be lost with a breaker; the least comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Nothing: a new one would be the same.
    AsNew,
    /// Closed, with failures: a new one would take some more to open.
    Closed { failures: u32, calls: u32 },
    /// Not closed: a new one would let calls through so much too early.
    Open(Duration),
    /// An operator's decision.
    Forced,
}

impl Worth {
    fn of(reading: &Reading) -> Self {
        match reading.state {
            BreakerState::Closed if reading.is_as_new() => Self::AsNew,
            BreakerState::Closed => Self::Closed {
                failures: reading.failures,
                calls: reading.counts.map_or(0, |counts| counts.calls),
            },
            BreakerState::HalfOpen | BreakerState::Open => {
                Self::Open(reading.time_to_probe.unwrap_or_default())
            }
            BreakerState::ForcedClosed | BreakerState::ForcedOpen => Self::Forced,
        }
    }
}

/// Drops breakers once there are more than `most`: all that are as new; and if that is not enough,
/// those of least worth, down to three quarters, so that the next new name does not start another
/// search. None is dropped that somebody else refers to (a call is running) or that is forced.
#[cold]
pub(crate) fn prune<K: Clone + Eq + Hash>(circuits: &DashMap<K, Arc<Circuit>>, most: usize) {
    if circuits.len() <= most {
        return;
    }
    circuits.retain(|_, circuit| Arc::strong_count(circuit) > 1 || !circuit.read().is_as_new());
    let left = circuits.len();
    if left <= most {
        return;
    }
    // what was as new a moment ago may count by now; what counts was worth more, and still is
    let mut all: Vec<_> = circuits
        .iter()
        .filter(|entry| Arc::strong_count(entry.value()) == 1)
        .map(|entry| (Worth::of(&entry.value().read()), entry.key().clone()))
        .filter(|(worth, _)| *worth < Worth::Forced)
        .collect();
    let excess = left - (most - most / 4);
    if excess < all.len() {
        all.select_nth_unstable_by_key(excess, |(worth, _)| *worth);
        all.truncate(excess);
    }
    for (_, key) in all {
        circuits.remove_if(&key, |_, circuit| Arc::strong_count(circuit) == 1);
    }
}
