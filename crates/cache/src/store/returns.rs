//! What waits between two lives.
//!
//! moka tells of an eviction in the middle of its own work, where it must not be called. So what is
//! to live on waits here until the next `put` brings it back, and is found here meanwhile. What
//! waits counts as kept, and its bytes are bounded: what does not fit is dropped.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::entry::Entry;

/// An entry in a store, with the number of clearings before it came.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) entry: Entry,
    pub(super) era: u32,
}

/// What waits between two lives.
#[derive(Debug)]
pub(super) struct Returns {
    max_bytes: u64,
    waiting: Mutex<Waiting>,
    /// How many wait: lets a look-up that found nothing pass without the lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    slots: VecDeque<(u128, Slot, u64)>,
    bytes: u64,
}

impl Returns {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            waiting: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Lets an entry wait that takes so many bytes; says whether there was room.
    pub(super) fn push(&self, key: u128, slot: Slot, bytes: u64) -> bool {
        let mut waiting = self.waiting.lock();
        let total = waiting.bytes + bytes;
        if total > self.max_bytes {
            return false;
        }
        waiting.bytes = total;
        waiting.slots.push_back((key, slot, bytes));
        self.count.store(waiting.slots.len(), Ordering::Release);
        true
    }

    /// Takes everything that waits, in the order it came.
    pub(super) fn take(&self) -> VecDeque<(u128, Slot, u64)> {
        if self.is_empty() {
            return VecDeque::new();
        }
        let mut waiting = self.waiting.lock();
        self.count.store(0, Ordering::Release);
        std::mem::take(&mut *waiting).slots
    }

    /// Finds the latest entry that waits under this key.
    pub(super) fn find(&self, key: u128) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        let waiting = self.waiting.lock();
        let found = waiting.slots.iter().rev().find(|(other, ..)| *other == key);
        found.map(|(_, slot, _)| slot.clone())
    }

    /// Returns what waited under this key, to be dropped.
    pub(super) fn remove(&self, key: u128) -> Vec<Slot> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock();
        let all = std::mem::take(&mut *waiting).slots;
        let mut removed = Vec::new();
        for (other, slot, bytes) in all {
            if other == key {
                removed.push(slot);
            } else {
                waiting.bytes += bytes;
                waiting.slots.push_back((other, slot, bytes));
            }
        }
        self.count.store(waiting.slots.len(), Ordering::Release);
        removed
    }

    /// Returns how many wait, and how many bytes they take.
    pub(super) fn usage(&self) -> (u64, u64) {
        let waiting = self.waiting.lock();
        (waiting.slots.len() as u64, waiting.bytes)
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}
