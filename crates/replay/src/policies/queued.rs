//! First in, first out; and least recently used.

use super::Simulator;
use super::queue::Queue;

/// One queue: a new key evicts from its old end. With LRU a hit moves the key to the new end.
#[derive(Debug)]
pub struct Queued {
    queue: Queue,
    capacity: u64,
    is_lru: bool,
}

impl Queued {
    /// Evicts the key that was stored first. A capacity of 0 keeps nothing.
    #[must_use]
    pub fn fifo(capacity: u64) -> Self {
        Self {
            queue: Queue::default(),
            capacity,
            is_lru: false,
        }
    }

    /// Evicts the key that was least recently used.
    #[must_use]
    pub fn lru(capacity: u64) -> Self {
        Self {
            is_lru: true,
            ..Self::fifo(capacity)
        }
    }
}

impl Simulator for Queued {
    fn access(&mut self, key: u32, size: u64) -> bool {
        let hit = if self.is_lru {
            self.queue.touch(key)
        } else {
            self.queue.contains(key)
        };
        if !hit && let Some(limit) = self.capacity.checked_sub(size) {
            while self.queue.weight() > limit {
                self.queue.pop();
            }
            self.queue.push(key, size);
        }
        hit
    }

    fn weight(&self) -> u64 {
        self.queue.weight()
    }
}
