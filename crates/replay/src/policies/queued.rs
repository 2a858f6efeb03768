//! First in, first out; least recently used; and least frequently used.

use super::Simulator;
use super::queue::Queue;

/// One queue: a new key evicts from its old end.
#[derive(Debug)]
#[must_use]
pub struct Queued {
    queue: Queue,
    capacity: u64,
    hit: fn(&mut Queue, u32) -> bool,
}

impl Queued {
    /// Evicts the key that was stored first. A capacity of 0 keeps nothing.
    pub fn fifo(capacity: u64) -> Self {
        Self::new(capacity, |queue, key| queue.contains(key))
    }

    /// Evicts the key that was least recently used.
    pub fn lru(capacity: u64) -> Self {
        Self::new(capacity, Queue::touch)
    }

    /// Evicts the key with the fewest requests since it was stored, and among equals the least
    /// recently used one. An evicted key starts again from one.
    pub fn lfu(capacity: u64) -> Self {
        Self::new(capacity, |queue, key| queue.raise(key, 1))
    }

    /// `hit` records the use of a key, and returns `true` if the key is present.
    fn new(capacity: u64, hit: fn(&mut Queue, u32) -> bool) -> Self {
        let queue = Queue::default();
        Self {
            queue,
            capacity,
            hit,
        }
    }
}

impl Simulator for Queued {
    fn access(&mut self, key: u32, size: u64) -> bool {
        let hit = (self.hit)(&mut self.queue, key);
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
