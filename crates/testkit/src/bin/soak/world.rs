//! What the server behind the gateway ran: the truth that clients' answers are held to.

use std::collections::HashMap;

use parking_lot::Mutex;

/// This many registers there are.
pub(crate) const KEYS: u64 = 8;

/// Registers, all values they ever held, and how often each write was applied.
#[derive(Debug, Default)]
pub(crate) struct World(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: HashMap<u64, Vec<u64>>,
    applied: HashMap<u64, u32>,
    reads: u64,
}

impl World {
    /// Returns a moment in the history of a register: how many values it has held.
    pub(crate) fn now(&self, key: u64) -> usize {
        self.0.lock().held.get(&key).map_or(0, Vec::len)
    }

    /// Returns `true` if the register held this value at some time since that moment.
    pub(crate) fn held_since(&self, key: u64, moment: usize, value: u64) -> bool {
        let inner = self.0.lock();
        let held = inner.held.get(&key).map_or(&[][..], Vec::as_slice);
        let before = moment.checked_sub(1).and_then(|last| held.get(last));
        before.copied().unwrap_or(0) == value
            || held
                .get(moment..)
                .is_some_and(|since| since.contains(&value))
    }

    /// Reads a register, as a call does.
    pub(crate) fn read(&self, key: u64) -> u64 {
        let mut inner = self.0.lock();
        inner.reads += 1;
        let held = inner.held.get(&key);
        held.and_then(|held| held.last()).copied().unwrap_or(0)
    }

    /// Writes a register: the number of the write is its value.
    pub(crate) fn write(&self, key: u64, number: u64) {
        let mut inner = self.0.lock();
        inner.held.entry(key).or_default().push(number);
        *inner.applied.entry(number).or_default() += 1;
    }

    /// Returns how often a write was applied.
    pub(crate) fn applied(&self, number: u64) -> u32 {
        self.0.lock().applied.get(&number).copied().unwrap_or(0)
    }

    /// Returns how many reads and writes were run, and how many writes more than once.
    pub(crate) fn totals(&self) -> (u64, usize, usize) {
        let inner = self.0.lock();
        let twice = inner.applied.values().filter(|times| **times > 1).count();
        (inner.reads, inner.applied.len(), twice)
    }
}
