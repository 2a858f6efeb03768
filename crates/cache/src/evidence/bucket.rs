//! Buckets of gaps, the observations in each, and which hits are verified.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::estimator::{Tally, Test};

/// The upper edges of the buckets, in seconds. A longer gap says nothing here.
pub(crate) const EDGES: [u32; BUCKETS] = [1, 3, 10, 30, 100, 300];
/// The number of buckets.
pub(crate) const BUCKETS: usize = 6;

/// One bucket: a gap above the edge before it, up to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket(pub(crate) usize);

impl Bucket {
    /// Returns the bucket of a gap; `None` above the last edge.
    pub(crate) fn of(gap: Duration) -> Option<Self> {
        let edge = |edge: &u32| gap <= Duration::from_secs((*edge).into());
        EDGES.iter().position(edge).map(Self)
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }
}

/// The observations in each bucket, of a tool or of one key.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct BucketTallies {
    #[serde(rename = "tallies")]
    pub(crate) of: [Tally; BUCKETS],
    /// The buckets that passed at an equal observation and had no different one since.
    pub(crate) granted: [bool; BUCKETS],
    /// When the next equal observation in each bucket counts, in milliseconds of the tool's clock.
    #[serde(skip)]
    next: [u64; BUCKETS],
}

impl BucketTallies {
    /// Returns `true` if there is no observation.
    pub(crate) fn is_empty(&self) -> bool {
        self.of
            .iter()
            .all(|tally| tally.equal + tally.different <= 0.0)
    }

    /// Returns `true` if an equal observation in this bucket counts now. Within the bucket's edge
    /// of the last one that counted it does not: one event changes what both saw, however many keys
    /// there are.
    pub(crate) fn is_due(&self, bucket: Bucket, now: u64) -> bool {
        now >= self.next[bucket.0]
    }

    /// Adds an equal observation, which may have no weight. Returns `true` if the bucket is newly
    /// granted.
    pub(crate) fn add_equal(&mut self, test: &Test, bucket: Bucket, weight: f64, now: u64) -> bool {
        if weight > 0.0 {
            self.next[bucket.0] = now.saturating_add(u64::from(EDGES[bucket.0]) * 1_000);
        }
        self.of[bucket.0].add_equal(weight);
        let is_new = !self.granted[bucket.0] && test.passes(&self.of[bucket.0]);
        self.granted[bucket.0] |= is_new;
        is_new
    }

    /// Adds a different observation, which removes the bucket until it passes again.
    pub(crate) fn add_different(&mut self, bucket: Bucket) {
        self.of[bucket.0].add_different();
        self.granted[bucket.0] = false;
    }

    /// Multiplies all weights; removes buckets that do not pass any more.
    pub(crate) fn age(&mut self, test: &Test, factor: f64) {
        for tally in &mut self.of {
            tally.age(factor);
        }
        self.revoke(test);
    }

    /// Removes the buckets that do not pass any more.
    pub(crate) fn revoke(&mut self, test: &Test) {
        for (granted, tally) in self.granted.iter_mut().zip(&self.of) {
            *granted &= test.passes(tally);
        }
    }

    /// Returns the edge up to which every bucket is granted.
    pub(crate) fn lifetime(&self) -> Duration {
        let edges = EDGES.iter().zip(self.granted);
        let last = edges.take_while(|(_, granted)| *granted).last();
        Duration::from_secs(last.map_or(0, |(edge, _)| *edge).into())
    }
}

/// The hits in a newly granted bucket that are all verified.
const ALWAYS_VERIFIED: u32 = 100;
/// The share of hits that is verified in the long run.
const MIN_SHARE: f64 = 0.05;

/// Returns `true` if a hit is verified: the first, second, ... since its bucket was granted. All of
/// the first 100 are, then a share of 100 / number that falls to 5 %. `draw` is uniform in [0, 1).
pub(crate) fn is_verified(number: u32, draw: f64) -> bool {
    let share = f64::from(ALWAYS_VERIFIED) / f64::from(number.max(1));
    // what is not a number is verified
    !matches!(draw.partial_cmp(&share.max(MIN_SHARE)), Some(order) if order.is_ge())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_fall_into_buckets_by_their_upper_edges() {
        let number = |millis| Bucket::of(Duration::from_millis(millis)).map(|bucket| bucket.0);
        let table = [
            (0, Some(0)),
            (1_000, Some(0)),
            (1_001, Some(1)),
            (3_000, Some(1)),
            (10_000, Some(2)),
            (29_999, Some(3)),
            (100_000, Some(4)),
            (100_001, Some(5)),
            (300_000, Some(5)),
            (300_001, None),
            (u64::MAX, None),
        ];
        for (millis, bucket) in table {
            assert_eq!(number(millis), bucket, "{millis}");
        }
    }

    fn fill(tallies: &mut BucketTallies, test: &Test, bucket: Bucket) {
        tallies.add_equal(test, bucket, test.fewest, 0);
    }

    #[test]
    fn a_bucket_that_does_not_pass_blocks_longer_ones() {
        let test = Test::new(0.01);
        let mut tallies = BucketTallies::default();
        let buckets: Vec<_> = Bucket::all().collect();
        for bucket in [5, 4, 3, 1] {
            fill(&mut tallies, &test, buckets[bucket]);
            assert_eq!(tallies.lifetime(), Duration::ZERO);
        }
        fill(&mut tallies, &test, buckets[0]);
        assert_eq!(tallies.lifetime(), Duration::from_secs(3));
        fill(&mut tallies, &test, buckets[2]);
        assert_eq!(tallies.lifetime(), Duration::from_secs(300));
        tallies.add_different(buckets[3]);
        assert_eq!(tallies.lifetime(), Duration::from_secs(10));
        assert!(!tallies.add_equal(&test, buckets[3], 1.0, 0));
        assert_eq!(tallies.lifetime(), Duration::from_secs(10));
        // with evidence to spare it passes again at the next equal observation
        tallies.add_equal(&test, buckets[3], 1_000.0, 0);
        tallies.add_different(buckets[3]);
        assert_eq!(tallies.lifetime(), Duration::from_secs(10));
        assert!(tallies.add_equal(&test, buckets[3], 0.0, 0));
        assert!(is_verified(5_000, f64::NAN) && !is_verified(5_000, 0.05));
        assert_eq!(tallies.lifetime(), Duration::from_secs(300));
    }
}
