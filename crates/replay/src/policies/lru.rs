//! Least recently used.

use super::Simulator;
use super::queue::Queue;

/// Least recently used: what was asked for longest ago makes room.
#[derive(Debug)]
pub struct Lru {
    queue: Queue,
    capacity: u64,
}

impl Lru {
    /// Keeps what weighs `capacity` in all.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            queue: Queue::default(),
            capacity,
        }
    }
}

impl Simulator for Lru {
    fn access(&mut self, key: u32, size: u64) -> bool {
        if self.queue.touch(key) {
            return true;
        }
        if let Some(room) = self.capacity.checked_sub(size) {
            while self.queue.weight() > room {
                self.queue.pop();
            }
            self.queue.push(key, size);
        }
        false
    }

    fn weight(&self) -> u64 {
        self.queue.weight()
    }
}
