//! The optimum, with knowledge of the future.

use std::collections::{BinaryHeap, HashMap, HashSet};

use super::Simulator;

/// Belady's optimum, MIN: evicts the key whose next request is last. Stores every miss.
///
/// No policy that stores every miss has more hits if all entries have one size. With sizes it is
/// only a heuristic; therefore it counts entries and ignores sizes.
#[derive(Debug)]
pub struct Belady {
    /// The time of the next request for the key of each request.
    next: Vec<u32>,
    /// Next use and key of each entry. A key used since has an older pair here too, which is below
    /// all valid pairs and never comes up.
    order: BinaryHeap<(u32, u32)>,
    kept: HashSet<u32>,
    capacity: u64,
    now: usize,
}

const NEVER: u32 = u32::MAX;

impl Belady {
    /// Keeps `capacity` entries. `keys` are the requests to come, in order.
    #[must_use]
    pub fn new(capacity: u64, keys: &[u32]) -> Self {
        let mut seen = HashMap::new();
        let mut next = Vec::with_capacity(keys.len());
        for (at, key) in keys.iter().enumerate().rev() {
            // requests beyond four billion count as equally far away
            let at = u32::try_from(at).unwrap_or(NEVER);
            next.push(seen.insert(*key, at).unwrap_or(NEVER));
        }
        next.reverse();
        Self {
            next,
            order: BinaryHeap::new(),
            kept: HashSet::new(),
            capacity,
            now: 0,
        }
    }
}

impl Simulator for Belady {
    fn access(&mut self, key: u32, _: u64) -> bool {
        let next = self.next.get(self.now).copied().unwrap_or(NEVER);
        self.now += 1;
        let hit = self.kept.contains(&key);
        if self.capacity == 0 {
            return hit;
        }
        if !hit {
            if self.weight() == self.capacity
                && let Some((_, farthest)) = self.order.pop()
            {
                self.kept.remove(&farthest);
            }
            self.kept.insert(key);
        }
        self.order.push((next, key));
        hit
    }

    fn weight(&self) -> u64 {
        self.kept.len() as u64
    }
}
