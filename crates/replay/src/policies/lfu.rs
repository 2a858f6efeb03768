//! Least frequently used.

use std::collections::{BTreeSet, HashMap};

use super::Simulator;

/// Least frequently used: evicts the key with the fewest requests since it was stored, and among
/// equals the least recently used one. An evicted key starts again from one.
#[derive(Debug)]
pub struct Lfu {
    /// Uses, the time of the last one, and the key.
    order: BTreeSet<(u64, u64, u32)>,
    kept: HashMap<u32, Kept>,
    weight: u64,
    capacity: u64,
    now: u64,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    uses: u64,
    last: u64,
    size: u64,
}

impl Lfu {
    /// Keeps keys of `capacity` in all.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            order: BTreeSet::new(),
            kept: HashMap::new(),
            weight: 0,
            capacity,
            now: 0,
        }
    }

    fn keep(&mut self, key: u32, uses: u64, size: u64) {
        let last = self.now;
        self.order.insert((uses, last, key));
        self.kept.insert(key, Kept { uses, last, size });
    }

    fn evict(&mut self) {
        if let Some((_, _, key)) = self.order.pop_first() {
            self.weight -= self.kept.remove(&key).map_or(0, |kept| kept.size);
        }
    }
}

impl Simulator for Lfu {
    fn access(&mut self, key: u32, size: u64) -> bool {
        self.now += 1;
        if let Some(Kept { uses, last, size }) = self.kept.get(&key).copied() {
            self.order.remove(&(uses, last, key));
            self.keep(key, uses + 1, size);
            return true;
        }
        if let Some(limit) = self.capacity.checked_sub(size) {
            while self.weight > limit {
                self.evict();
            }
            self.weight += size;
            self.keep(key, 1, size);
        }
        false
    }

    fn weight(&self) -> u64 {
        self.weight
    }
}
