//! The ends of the scale: nothing is kept, and everything.

use super::Simulator;
use super::queue::PerKey;

/// Keeps nothing.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct NoCache;

impl NoCache {
    /// Keeps nothing.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Simulator for NoCache {
    fn access(&mut self, _: u32, _: u64) -> bool {
        false
    }

    fn weight(&self) -> u64 {
        0
    }
}

/// Keeps everything until it ends. Recorded keys carry no time, so nothing ends: these are the most
/// hits there can be, and the memory it takes has no bound.
#[derive(Debug, Default)]
pub struct Unbounded {
    kept: PerKey<bool>,
    weight: u64,
}

impl Unbounded {
    /// Keeps everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Simulator for Unbounded {
    fn access(&mut self, key: u32, size: u64) -> bool {
        let hit = self.kept.get(key);
        if !hit {
            self.kept.set(key, true);
            self.weight = self.weight.saturating_add(size);
        }
        hit
    }

    fn weight(&self) -> u64 {
        self.weight
    }
}
