//! Least frequently used.

use std::collections::BTreeSet;

use super::Simulator;
use super::queue::PerKey;

/// Least frequently used: what was asked for least often since it was stored makes room, among
/// equals what was asked for longest ago. What was dropped starts from one again.
#[derive(Debug)]
pub struct Lfu {
    /// Uses, the time of the last one, and the key.
    order: BTreeSet<(u64, u64, u32)>,
    kept: PerKey<Kept>,
    weight: u64,
    capacity: u64,
    now: u64,
}

/// No uses: not kept.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    uses: u64,
    last: u64,
    size: u64,
}

impl Lfu {
    /// Keeps what weighs `capacity` in all.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            order: BTreeSet::new(),
            kept: PerKey::default(),
            weight: 0,
            capacity,
            now: 0,
        }
    }

    fn keep(&mut self, key: u32, kept: Kept) {
        self.order.insert((kept.uses, kept.last, key));
        self.kept.set(key, kept);
    }

    fn evict(&mut self) {
        if let Some((_, _, key)) = self.order.pop_first() {
            self.weight -= self.kept.get(key).size;
            self.kept.set(key, Kept::default());
        }
    }
}

impl Simulator for Lfu {
    fn access(&mut self, key: u32, size: u64) -> bool {
        self.now += 1;
        let last = self.now;
        let kept = self.kept.get(key);
        if kept.uses > 0 {
            self.order.remove(&(kept.uses, kept.last, key));
            let uses = kept.uses + 1;
            self.keep(key, Kept { uses, last, ..kept });
            return true;
        }
        if let Some(room) = self.capacity.checked_sub(size) {
            while self.weight > room {
                self.evict();
            }
            self.weight += size;
            let uses = 1;
            self.keep(key, Kept { uses, last, size });
        }
        false
    }

    fn weight(&self) -> u64 {
        self.weight
    }
}
