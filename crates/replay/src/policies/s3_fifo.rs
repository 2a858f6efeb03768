//! Three queues, first in first out.

use super::Simulator;
use super::queue::{PerKey, Queue};

/// S3-FIFO (Yang and others, SOSP 2023): a small queue on probation, a main queue, and a ghost queue
/// that remembers what was dropped from the small one.
///
/// A tenth of the capacity is the small queue. What was asked for more than once while in it moves
/// to the main queue, the rest is dropped and remembered; what is remembered goes to the main queue
/// at once when it comes back. The main queue lets what was asked for go round again, up to three
/// times. The ghost queue remembers keys that weighed as much as the main queue holds.
#[derive(Debug)]
pub struct S3Fifo {
    small: Queue,
    main: Queue,
    ghost: Queue,
    uses: PerKey<u8>,
    capacity: u64,
    small_share: u64,
}

const MOST_USES: u8 = 3;

impl S3Fifo {
    /// Keeps what weighs `capacity` in all.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            small: Queue::default(),
            main: Queue::default(),
            ghost: Queue::default(),
            uses: PerKey::default(),
            capacity,
            small_share: (capacity / 10).max(1),
        }
    }

    fn make_room(&mut self, room: u64) {
        while self.weight() > room {
            if self.small.weight() >= self.small_share || self.main.weight() == 0 {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
    }

    /// Moves what proved itself, until something is dropped.
    fn evict_small(&mut self) {
        while let Some((key, size)) = self.small.pop() {
            if self.uses.get(key) > 1 {
                self.uses.set(key, 0);
                self.main.push(key, size);
                while self.main.weight() > self.main_share() {
                    self.evict_main();
                }
            } else {
                self.remember(key, size);
                return;
            }
        }
    }

    /// Lets what was used go round, until something is dropped.
    fn evict_main(&mut self) {
        while let Some((key, size)) = self.main.pop() {
            let uses = self.uses.get(key);
            let Some(left) = uses.checked_sub(1) else {
                return;
            };
            self.uses.set(key, left);
            self.main.push(key, size);
        }
    }

    fn remember(&mut self, key: u32, size: u64) {
        self.ghost.push(key, size);
        while self.ghost.weight() > self.main_share() {
            self.ghost.pop();
        }
    }

    fn main_share(&self) -> u64 {
        self.capacity - self.small_share.min(self.capacity)
    }
}

impl Simulator for S3Fifo {
    fn access(&mut self, key: u32, size: u64) -> bool {
        if self.small.contains(key) || self.main.contains(key) {
            let uses = self.uses.get(key);
            self.uses.set(key, (uses + 1).min(MOST_USES));
            return true;
        }
        let Some(room) = self.capacity.checked_sub(size) else {
            return false;
        };
        let known = self.ghost.remove(key).is_some();
        self.make_room(room);
        self.uses.set(key, 0);
        if known {
            self.main.push(key, size);
        } else {
            self.small.push(key, size);
        }
        false
    }

    fn weight(&self) -> u64 {
        self.small.weight() + self.main.weight()
    }
}
