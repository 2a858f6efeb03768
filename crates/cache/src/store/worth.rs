//! What an entry is worth, and what room costs.
//!
//! # Rule
//!
//! *The value of an entry is the upstream time a hit saves, times the odds of a hit, divided by the
//! bytes it takes.* Times below the slow threshold count as the threshold: whether a result saves 5
//! or 50 milliseconds is nothing to its caller, so among fast results only use and size decide.
//!
//! *Room is shared out by recency, and given a second time by value.* Each entry lives once through
//! the queue of the least recently used. One that comes to the end of it begins another life if its
//! value reaches the going rate: the mean of time saved per byte over what came to the end lately.
//!
//! - An entry that was hit in the life that ends has shown what it is worth. Its odds count as 1,
//!   and up to 2 for many hits: at the common price it always stays.
//! - One that was not hit has the odds its last life began with: for a new entry what is known
//!   of its tool, 1/2 at most. At the common price it never stays.
//! - Each new life begins with half the odds. So nothing stays for ever, however slow it was to make.
//!
//! Where all results cost and weigh the same, "value reaches the rate" is therefore just "was hit
//! since", and the store keeps what CLOCK keeps.
//!
//! *A store that is full refuses what is worth far less than what would have to go*: a large result
//! whose tool is fast. Far less is a factor of 64, more than odds alone can make out. Whoever
//! is asked for again soon after it was refused is taken.
//!
//! The rate is a mean of logarithms, so that one result that took an hour does not make everything
//! else look cheap for a while.
//!
//! # Sources
//!
//! Recency: LRU. A second chance for what was used: CLOCK (Corbató, "A paging experiment with the
//! Multics system", 1968). Time saved per byte against a rate that rises with what is evicted:
//! GreedyDual-Size (Cao and Irani, 1997), with the frequency in it: GDSF (Cherkasova, 1998).
//! Ours differs from these in keeping no priority queue: the rate is learnt from what leaves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::entry::Entry;

/// What room costs, learnt from what leaves.
#[derive(Debug)]
pub(super) struct Worth {
    /// Seconds.
    threshold: f64,
    /// The bits of an `f64`: the going rate, as a logarithm. Not a number as long as nothing left.
    rate: AtomicU64,
}

impl Worth {
    /// Counts upstream times below `threshold` as the threshold.
    pub(super) fn new(threshold: Duration) -> Self {
        Self {
            // below that, times are noise; and a threshold of nothing would divide by nothing
            threshold: threshold.max(Duration::from_millis(1)).as_secs_f64(),
            rate: AtomicU64::new(f64::NAN.to_bits()),
        }
    }

    /// Says with which odds an entry that takes so many bytes begins another life, if it does.
    /// Called for each entry that comes to the end of one.
    pub(super) fn another_life(&self, entry: &Entry, bytes: u64) -> Option<f32> {
        let density = self.density(entry, bytes);
        let rate = self.learn(density);
        let odds = odds(entry);
        // equal prices must count as equal whatever the arithmetic made of them
        let stays = density + f64::from(odds).log2() >= rate - 1e-6;
        stays.then_some(odds / 2.0)
    }

    /// Says whether an entry is worth far less than what would have to go for it.
    pub(super) fn is_too_cheap(&self, entry: &Entry, bytes: u64) -> bool {
        let value = self.density(entry, bytes) + f64::from(odds(entry)).log2();
        // false as long as there is no rate
        value < self.rate() - FAR_LESS
    }

    /// The logarithm of the time a hit saves, in thresholds, per byte.
    fn density(&self, entry: &Entry, bytes: u64) -> f64 {
        let thresholds = (entry.usual_cost().as_secs_f64() / self.threshold).max(1.0);
        #[expect(clippy::cast_precision_loss, reason = "a size, not an identity")]
        let bytes = bytes.max(1) as f64;
        (thresholds / bytes).log2()
    }

    fn rate(&self) -> f64 {
        f64::from_bits(self.rate.load(Ordering::Relaxed))
    }

    /// Adds to the mean; returns it. Two that add at the same time may count as one.
    fn learn(&self, density: f64) -> f64 {
        let before = self.rate();
        let rate = if before.is_nan() {
            density
        } else {
            before + (density - before) * SHARE_OF_ONE
        };
        self.rate.store(rate.to_bits(), Ordering::Relaxed);
        rate
    }
}

/// How likely another hit is: at most 1/2 if there was none, at least 1 if there was.
fn odds(entry: &Entry) -> f32 {
    match entry.hits_in_this_life() {
        0 => entry.odds().min(0.5),
        1 => 1.0,
        2..4 => 1.5,
        _ => 1.75,
    }
}

/// How much the latest entry counts in the mean: a few hundred make it.
const SHARE_OF_ONE: f64 = 1.0 / 128.0;

/// A factor of 64, as a logarithm.
const FAR_LESS: f64 = 6.0;

#[cfg(test)]
mod tests {
    use callward_core::ToolOutput;
    use tokio::time::Instant;

    use super::*;

    const THRESHOLD: Duration = Duration::from_millis(500);

    fn entry(cost: Duration) -> Entry {
        Entry::new(
            ToolOutput::text("x"),
            Duration::from_secs(1),
            Instant::now(),
        )
        .with_cost(cost)
    }

    fn fast() -> Entry {
        entry(Duration::from_millis(20))
    }

    fn learnt(densities: impl IntoIterator<Item = (Entry, u64)>) -> Worth {
        let worth = Worth::new(THRESHOLD);
        for (entry, bytes) in densities {
            worth.another_life(&entry, bytes);
        }
        worth
    }

    #[test]
    fn at_the_common_price_only_use_counts() {
        let worth = learnt((0..1000_u64).map(|ms| (entry(Duration::from_millis(ms / 2)), 700)));
        for odds in [0.0, 0.25, 0.5] {
            let unused = fast().with_odds(odds);
            assert_eq!(worth.another_life(&unused, 700), None);
            unused.touch();
            assert_eq!(worth.another_life(&unused, 700), Some(0.5));
        }
    }

    #[test]
    fn what_was_given_once_is_not_given_again_without_a_hit() {
        let worth = learnt((0..100).map(|_| (fast(), 700)));
        let entry = fast();
        for _ in 0..9 {
            entry.touch();
        }
        let odds = worth.another_life(&entry, 700).unwrap();
        entry.begin_life(odds);
        assert_eq!(worth.another_life(&entry, 700), None);
    }

    #[test]
    fn slow_results_live_on_without_a_hit_but_not_for_ever() {
        let worth = learnt((0..500).map(|_| (fast(), 700)));
        let slow = entry(Duration::from_secs(10));
        let mut lives = 0;
        while let Some(odds) = worth.another_life(&slow, 700) {
            slow.begin_life(odds);
            lives += 1;
        }
        assert_eq!(lives, 3);
    }

    #[test]
    fn only_the_large_and_cheap_are_refused_and_only_at_a_rate() {
        assert!(!Worth::new(THRESHOLD).is_too_cheap(&fast(), 1 << 20));
        let worth = learnt((0..500).map(|_| (fast(), 700)));
        assert!(worth.is_too_cheap(&fast(), 700 * 20));
        assert!(!worth.is_too_cheap(&fast(), 700 * 10));
        assert!(!worth.is_too_cheap(&entry(Duration::from_secs(10)), 700 * 100));
        // a tool whose results nobody ever asked for again
        assert!(!worth.is_too_cheap(&fast().with_odds(0.0), 700));
    }

    #[test]
    fn one_result_of_an_hour_does_not_make_the_others_cheap() {
        let worth = learnt((0..500).map(|_| (fast(), 700)));
        worth.another_life(&entry(Duration::from_secs(3600)), 700);
        let used = fast();
        used.touch();
        used.touch();
        assert!(worth.another_life(&used, 700).is_some());
    }
}
