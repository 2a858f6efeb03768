//! Which hits are checked.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws a share of all hits: the same ones for the same seed, and evenly in the long run.
#[derive(Debug)]
pub(super) struct Draw {
    per_thousand: u64,
    next: AtomicU64,
}

impl Draw {
    pub(super) fn new(per_thousand: u32, seed: Option<u64>) -> Self {
        // std seeds each state from the system's random source
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        Self {
            per_thousand: per_thousand.into(),
            next: AtomicU64::new(seed),
        }
    }

    /// Says whether this one is drawn. Where none is, it is a comparison.
    pub(super) fn next(&self) -> bool {
        if self.per_thousand == 0 {
            return false;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        scatter(number) % 1000 < self.per_thousand
    }
}

/// Sends neighbouring numbers far apart (the generator SplitMix64).
const fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(per_thousand: u32, seed: u64) -> Vec<bool> {
        let draw = Draw::new(per_thousand, Some(seed));
        (0..100_000).map(|_| draw.next()).collect()
    }

    #[test]
    fn the_share_is_drawn_and_a_seed_draws_the_same() {
        let hits = |per_thousand| drawn(per_thousand, 7).iter().filter(|hit| **hit).count();
        assert_eq!((hits(0), hits(1000), hits(5000)), (0, 100_000, 100_000));
        assert!((9_500..10_500).contains(&hits(100)), "{}", hits(100));
        assert_eq!(drawn(100, 7), drawn(100, 7));
        assert_ne!(drawn(100, 7), drawn(100, 700_000));
    }
}
