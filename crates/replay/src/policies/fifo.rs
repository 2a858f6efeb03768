//! First in, first out.

use super::Simulator;
use super::queue::Queue;

/// First in, first out: what was stored longest ago makes room, asked for or not.
#[derive(Debug)]
pub struct Fifo {
    queue: Queue,
    capacity: u64,
}

impl Fifo {
    /// Keeps what weighs `capacity` in all.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            queue: Queue::default(),
            capacity,
        }
    }
}

impl Simulator for Fifo {
    fn access(&mut self, key: u32, size: u64) -> bool {
        if self.queue.contains(key) {
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
