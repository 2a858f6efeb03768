//! W-TinyLFU.

use super::Simulator;
use super::queue::Queue;
use super::sketch::Sketch;

/// W-TinyLFU (Einziger, Friedman and Manes, 2017), with a window of fixed size.
///
/// A new key enters an LRU window of one hundredth. A key that leaves the window enters the main
/// part only if a count-min sketch has seen it more often lately than the key to be evicted. The
/// main part is segmented: four fifths are for keys requested again since they entered.
#[derive(Debug)]
pub struct WTinyLfu {
    sketch: Sketch,
    window: Queue,
    probation: Queue,
    protected: Queue,
    capacity: u64,
    window_share: u64,
    protected_share: u64,
}

impl WTinyLfu {
    /// Keeps keys of `capacity` in all, about `entries` entries.
    #[must_use]
    pub fn new(capacity: u64, entries: u64) -> Self {
        let window_share = (capacity / 100).max(1);
        let main = capacity.saturating_sub(window_share);
        Self {
            sketch: Sketch::new(entries),
            window: Queue::default(),
            probation: Queue::default(),
            protected: Queue::default(),
            capacity,
            window_share,
            protected_share: main - main / 5,
        }
    }

    /// Records a use. Returns `true` if the key is present.
    fn touch(&mut self, key: u32) -> bool {
        if self.window.touch(key) || self.protected.touch(key) {
            return true;
        }
        let Some(size) = self.probation.remove(key) else {
            return false;
        };
        self.protected.push(key, size);
        while self.protected.weight() > self.protected_share {
            // a demoted key is the newest on probation
            let Some((key, size)) = self.protected.pop() else {
                break;
            };
            self.probation.push(key, size);
        }
        true
    }

    /// Drops the candidate, or evicts others to admit it.
    fn admit(&mut self, candidate: u32, size: u64) {
        let share = self.capacity.saturating_sub(self.window_share);
        let Some(limit) = share.checked_sub(size) else {
            return;
        };
        while self.probation.weight() + self.protected.weight() > limit {
            let on_probation = self.probation.oldest();
            let Some((victim, _)) = on_probation.or_else(|| self.protected.oldest()) else {
                return;
            };
            if self.sketch.frequency(candidate) <= self.sketch.frequency(victim) {
                return;
            }
            self.probation.remove(victim);
            self.protected.remove(victim);
        }
        self.probation.push(candidate, size);
    }
}

impl Simulator for WTinyLfu {
    fn access(&mut self, key: u32, size: u64) -> bool {
        self.sketch.count(key);
        if self.touch(key) {
            return true;
        }
        if size <= self.capacity {
            self.window.push(key, size);
        }
        while self.window.weight() > self.window_share {
            let Some((candidate, size)) = self.window.pop() else {
                break;
            };
            self.admit(candidate, size);
        }
        false
    }

    fn weight(&self) -> u64 {
        self.window.weight() + self.probation.weight() + self.protected.weight()
    }
}
