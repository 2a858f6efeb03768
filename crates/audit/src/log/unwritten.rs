//! Unwritten records, and when an answer waits for them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::{AuditConfig, Fsync, OnFull};

/// When each unwritten record was queued, the oldest first. A record is written once the system has
/// it: from then on it outlives the process. Each holds a permit, which bounds their number.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(VecDeque<Instant>);

/// The limit on unwritten records at an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// Answers wait from this many records on,
    records: usize,
    /// or if one is this old.
    age: Duration,
}

impl Unwritten {
    pub(super) fn reaches(&self, bound: Bound) -> bool {
        let oldest = self.0.front().map(Instant::elapsed);
        self.0.len() >= bound.records || oldest.is_some_and(|age| age >= bound.age)
    }

    /// Adds a record that is queued now.
    pub(super) fn add(&mut self) {
        self.0.push_back(Instant::now());
    }

    /// Removes the oldest records, which are written.
    pub(super) fn written(&mut self, records: usize) {
        self.0.drain(..records.min(self.0.len()));
    }
}

impl Bound {
    pub(super) fn of(config: &AuditConfig) -> Self {
        let (records, age) = match (config.fsync, config.on_full) {
            // every answer waits
            (Fsync::EveryRecord, _) => (0, MAX_AGE),
            // no answer waits
            (_, OnFull::Drop) => (usize::MAX, Duration::MAX),
            (Fsync::Interval(time), OnFull::Block) => (MAX_RECORDS, time.min(MAX_AGE)),
            (Fsync::Never, OnFull::Block) => (MAX_RECORDS, MAX_AGE),
        };
        Self { records, age }
    }
}

/// A killed process loses at most this many records of answered calls.
const MAX_RECORDS: usize = 1000;
/// It loses at most those of a second: a record that is queued behind one of this age is written
/// well before, even if it is long or the machine is busy.
const MAX_AGE: Duration = Duration::from_millis(250);
