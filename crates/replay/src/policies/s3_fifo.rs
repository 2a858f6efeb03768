//! S3-FIFO.

use std::collections::HashMap;

use super::Simulator;
use super::queue::Queue;

/// S3-FIFO (Yang and others, SOSP 2023): a small queue, a main queue, and a ghost queue with the
/// keys that the small queue evicted.
///
/// The small queue has a tenth of the capacity. A key requested more than once there moves to the
/// main queue; any other is evicted to the ghost queue. A key in the ghost queue goes straight to
/// the main queue when it returns. The main queue reinserts a requested key up to three times. The
/// ghost queue holds keys of as much weight as the main queue.
#[derive(Debug)]
pub struct S3Fifo {
    small: Queue,
    main: Queue,
    ghost: Queue,
    uses: HashMap<u32, u8>,
    capacity: u64,
    small_share: u64,
}

const MAX_USES: u8 = 3;

impl S3Fifo {
    /// Keeps keys of `capacity` in all.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            small: Queue::default(),
            main: Queue::default(),
            ghost: Queue::default(),
            uses: HashMap::new(),
            capacity,
            small_share: (capacity / 10).max(1),
        }
    }

    fn main_share(&self) -> u64 {
        self.capacity.saturating_sub(self.small_share)
    }

    fn uses(&self, key: u32) -> u8 {
        self.uses.get(&key).copied().unwrap_or(0)
    }

    /// Promotes keys until one is evicted.
    fn evict_small(&mut self) {
        while let Some((key, size)) = self.small.pop() {
            if self.uses(key) <= 1 {
                self.ghost.push(key, size);
                while self.ghost.weight() > self.main_share() {
                    self.ghost.pop();
                }
                return;
            }
            self.uses.insert(key, 0);
            self.main.push(key, size);
            while self.main.weight() > self.main_share() {
                self.evict_main();
            }
        }
    }

    /// Reinserts requested keys until one is evicted.
    fn evict_main(&mut self) {
        while let Some((key, size)) = self.main.pop() {
            let Some(left) = self.uses(key).checked_sub(1) else {
                return;
            };
            self.uses.insert(key, left);
            self.main.push(key, size);
        }
    }
}

impl Simulator for S3Fifo {
    fn access(&mut self, key: u32, size: u64) -> bool {
        if self.small.contains(key) || self.main.contains(key) {
            self.uses.insert(key, (self.uses(key) + 1).min(MAX_USES));
            return true;
        }
        let Some(limit) = self.capacity.checked_sub(size) else {
            return false;
        };
        let is_known = self.ghost.remove(key).is_some();
        while self.weight() > limit {
            if self.small.weight() >= self.small_share || self.main.weight() == 0 {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
        self.uses.insert(key, 0);
        let queue = if is_known {
            &mut self.main
        } else {
            &mut self.small
        };
        queue.push(key, size);
        false
    }

    fn weight(&self) -> u64 {
        self.small.weight() + self.main.weight()
    }
}
