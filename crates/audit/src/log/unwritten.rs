//! Records that are not written yet, and when the answer of a call waits for them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::{AuditConfig, Fsync, OnFull};

/// When each of them was handed to the writer, the oldest first. A record counts as written once the
/// system has it: from then on it outlives this process. Each holds a place, so there are no more of
/// them than places.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(VecDeque<Instant>);

/// What may be unwritten when a call is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// Fewer records than this,
    records: usize,
    /// and none that is so old.
    age: Duration,
}

impl Unwritten {
    pub(super) fn reaches(&self, bound: Bound) -> bool {
        let oldest = self.0.front().map(Instant::elapsed);
        self.0.len() >= bound.records || oldest.is_some_and(|age| age >= bound.age)
    }

    /// Adds a record that is handed over now.
    pub(super) fn add(&mut self) {
        self.0.push_back(Instant::now());
    }

    /// Notes that so many of the oldest are written.
    pub(super) fn written(&mut self, records: usize) {
        self.0.drain(..records.min(self.0.len()));
    }
}

impl Bound {
    pub(super) fn of(config: &AuditConfig) -> Self {
        let (records, age) = match (config.fsync, config.on_full) {
            // each answer waits
            (Fsync::EveryRecord, _) => (0, LONGEST),
            // none does
            (_, OnFull::Drop) => (usize::MAX, Duration::MAX),
            (Fsync::Interval(time), OnFull::Block) => (MOST, time.min(LONGEST)),
            (Fsync::Never, OnFull::Block) => (MOST, LONGEST),
        };
        Self { records, age }
    }
}

/// A process that is killed loses so many answered calls at most,
const MOST: usize = 1000;
/// and those of this time.
const LONGEST: Duration = Duration::from_secs(1);
