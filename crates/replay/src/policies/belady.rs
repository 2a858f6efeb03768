//! The optimum, by looking ahead.

use std::collections::BinaryHeap;

use super::Simulator;
use super::queue::PerKey;

/// Belady's optimum, MIN: what is asked for again last makes room. Every miss is stored.
///
/// No policy that stores every miss has more hits, if all entries weigh the same. With sizes it is
/// only a rule of thumb; so it counts entries and takes no size.
#[derive(Debug)]
pub struct Belady {
    /// When the key of each request is asked for next.
    next: Vec<u32>,
    /// Next use and key of what is kept. What was used since stands in it twice: the older one is
    /// below all that are true, and never comes up.
    order: BinaryHeap<(u32, u32)>,
    kept: PerKey<bool>,
    count: u64,
    capacity: u64,
    now: usize,
}

const NEVER: u32 = u32::MAX;

impl Belady {
    /// Keeps `capacity` entries. The requests to come are `keys`, in this order.
    #[must_use]
    pub fn new(capacity: u64, keys: &[u32]) -> Self {
        let mut seen = PerKey::<Option<u32>>::default();
        let mut next: Vec<u32> = keys
            .iter()
            .enumerate()
            .rev()
            .map(|(at, key)| {
                let next = seen.get(*key).unwrap_or(NEVER);
                // past four billion requests all are equally far away
                seen.set(*key, Some(u32::try_from(at).unwrap_or(NEVER)));
                next
            })
            .collect();
        next.reverse();
        Self {
            next,
            order: BinaryHeap::new(),
            kept: PerKey::default(),
            count: 0,
            capacity,
            now: 0,
        }
    }
}

impl Simulator for Belady {
    fn access(&mut self, key: u32, _: u64) -> bool {
        let next = self.next.get(self.now).copied().unwrap_or(NEVER);
        self.now += 1;
        let hit = self.kept.get(key);
        if !hit && self.capacity > 0 {
            if self.count == self.capacity {
                if let Some((_, farthest)) = self.order.pop() {
                    self.kept.set(farthest, false);
                }
            } else {
                self.count += 1;
            }
            self.kept.set(key, true);
        }
        if self.capacity > 0 {
            self.order.push((next, key));
        }
        hit
    }

    fn weight(&self) -> u64 {
        self.count
    }
}
