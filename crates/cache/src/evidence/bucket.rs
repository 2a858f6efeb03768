//! Buckets of gaps, what is known in each, and which hits are verified.

use std::time::Duration;

use super::estimator::{Tally, Test};

/// The upper edges of the buckets, in seconds. A longer gap says nothing here.
pub(crate) const EDGES: [u32; BUCKETS] = [1, 3, 10, 30, 100, 300];
/// How many buckets there are.
pub(crate) const BUCKETS: usize = 6;

/// One bucket: a gap above the edge before it, up to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket(usize);

impl Bucket {
    /// Returns the bucket of a gap; `None` above the last edge.
    pub(crate) fn of(gap: Duration) -> Option<Self> {
        let edge = |edge: &u32| gap <= Duration::from_secs((*edge).into());
        EDGES.iter().position(edge).map(Self)
    }

    /// Returns the bucket with this number; `None` if there is none.
    pub(crate) fn numbered(number: usize) -> Option<Self> {
        (number < BUCKETS).then_some(Self(number))
    }

    pub(crate) fn number(self) -> usize {
        self.0
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }

    /// Returns the bit that stands for the bucket in a byte.
    pub(crate) fn bit(self) -> u8 {
        1 << self.0
    }
}

/// What is known in each bucket, of a tool or of one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) tallies: [Tally; BUCKETS],
    /// The buckets that passed at an equal observation and had no different one since: one bit each.
    granted: u8,
    /// When the next equal observation in each bucket counts, in milliseconds of the tool's clock.
    next: [u64; BUCKETS],
}

impl Row {
    /// Takes what was kept. [`age`](Self::age) is to follow, which removes what does not pass.
    pub(crate) fn restored(tallies: [Tally; BUCKETS], granted: u8) -> Self {
        Self {
            tallies,
            granted,
            next: [0; BUCKETS],
        }
    }

    pub(crate) fn is_granted(&self, bucket: Bucket) -> bool {
        self.granted & bucket.bit() != 0
    }

    /// Says whether an equal observation in this bucket counts now. Within the bucket's edge of the last
    /// one that counted it does not: one event changes what both saw, however many keys there are.
    pub(crate) fn is_due(&self, bucket: Bucket, now: u64) -> bool {
        now >= self.next[bucket.0]
    }

    /// Adds an equal observation, which may have no weight. Returns true if the bucket is newly granted.
    pub(crate) fn add_equal(&mut self, test: &Test, bucket: Bucket, weight: f64, now: u64) -> bool {
        if weight > 0.0 {
            self.next[bucket.0] = now.saturating_add(u64::from(EDGES[bucket.0]) * 1_000);
        }
        let tally = &mut self.tallies[bucket.0];
        tally.add_equal(weight);
        let is_new = !self.is_granted(bucket) && test.passes(&self.tallies[bucket.0]);
        if is_new {
            self.granted |= bucket.bit();
        }
        is_new
    }

    /// Removes equal observations: they turned out different, or their key was dropped.
    pub(crate) fn remove_equal(&mut self, bucket: Bucket, weight: f64) {
        self.tallies[bucket.0].remove_equal(weight);
    }

    /// Adds a different observation, which removes the bucket until it passes again.
    pub(crate) fn add_different(&mut self, bucket: Bucket) {
        self.tallies[bucket.0].add_different();
        self.remove(bucket);
    }

    /// Removes the bucket until it passes again, without an observation.
    pub(crate) fn remove(&mut self, bucket: Bucket) {
        self.granted &= !bucket.bit();
    }

    /// Multiplies all weights; removes buckets that do not pass any more.
    pub(crate) fn age(&mut self, test: &Test, factor: f64) {
        for tally in &mut self.tallies {
            tally.age(factor);
        }
        self.revoke(test);
    }

    /// Removes the buckets that do not pass any more.
    pub(crate) fn revoke(&mut self, test: &Test) {
        for bucket in Bucket::all() {
            if self.is_granted(bucket) && !test.passes(&self.tallies[bucket.0]) {
                self.remove(bucket);
            }
        }
    }

    /// Returns the edge up to which every bucket is granted.
    pub(crate) fn lifetime(&self) -> Duration {
        let granted = self.granted.trailing_ones() as usize;
        let edge = granted.checked_sub(1).and_then(|last| EDGES.get(last));
        Duration::from_secs(edge.copied().unwrap_or(0).into())
    }
}

/// The hits in a newly granted bucket that are all verified.
const ALL_OF_THE_FIRST: u32 = 100;
/// The share of hits that is verified in the long run.
const LEAST_SHARE: f64 = 0.05;

/// Says whether a hit is verified: the first, second, ... since its bucket was granted. All of the
/// first 100 are, then a share of 100 / number that falls to 5 %. `draw` is uniform in [0, 1).
pub(crate) fn is_verified(number: u32, draw: f64) -> bool {
    let share = f64::from(ALL_OF_THE_FIRST) / f64::from(number.max(1));
    // what is not a number is verified
    !matches!(draw.partial_cmp(&share.max(LEAST_SHARE)), Some(order) if order.is_ge())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gaps_fall_into_buckets_by_their_upper_edges() {
        let number = |millis| Bucket::of(Duration::from_millis(millis)).map(Bucket::number);
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

    fn fill(row: &mut Row, test: &Test, bucket: Bucket) {
        row.add_equal(test, bucket, test.fewest(), 0);
    }

    #[test]
    fn a_bucket_that_does_not_pass_blocks_longer_ones() {
        let test = Test::new(0.01);
        let mut row = Row::default();
        let buckets: Vec<_> = Bucket::all().collect();
        for bucket in [5, 4, 3, 1] {
            fill(&mut row, &test, buckets[bucket]);
            assert_eq!(row.lifetime(), Duration::ZERO);
        }
        fill(&mut row, &test, buckets[0]);
        assert_eq!(row.lifetime(), Duration::from_secs(3));
        fill(&mut row, &test, buckets[2]);
        assert_eq!(row.lifetime(), Duration::from_secs(300));
        row.add_different(buckets[3]);
        assert_eq!(row.lifetime(), Duration::from_secs(10));
        assert!(!row.add_equal(&test, buckets[3], 1.0, 0));
        assert_eq!(row.lifetime(), Duration::from_secs(10));
        // with evidence to spare it passes again at the next equal observation
        row.add_equal(&test, buckets[3], 1_000.0, 0);
        row.add_different(buckets[3]);
        assert_eq!(row.lifetime(), Duration::from_secs(10));
        assert!(row.add_equal(&test, buckets[3], 0.0, 0));
        assert_eq!(row.lifetime(), Duration::from_secs(300));
    }

    #[test]
    fn ageing_removes_a_bucket() {
        let test = Test::new(0.01);
        let mut row = Row::default();
        let first = Bucket(0);
        assert!(row.add_equal(&test, first, 2.0 * test.fewest(), 0));
        row.age(&test, 0.51);
        assert!(row.is_granted(first));
        row.age(&test, 0.9);
        assert!(!row.is_granted(first));
    }

    #[test]
    fn the_first_hundred_hits_are_verified_and_later_a_share() {
        let share = |number: u32| {
            let drawn = |draw: &u32| is_verified(number, f64::from(*draw) / 1_000.0);
            (0..1_000).filter(drawn).count()
        };
        let table = [(0, 1_000), (1, 1_000), (100, 1_000), (200, 500)];
        for (number, verified) in table.into_iter().chain([(2_000, 50), (u32::MAX, 50)]) {
            assert_eq!(share(number), verified, "{number}");
        }
        assert!(is_verified(5_000, f64::NAN));
    }

    proptest! {
        #[test]
        fn a_lifetime_needs_every_bucket_up_to_it(granted in 0..64_u8) {
            let mut row = Row::default();
            let test = Test::new(0.01);
            for bucket in Bucket::all().filter(|bucket| granted & bucket.bit() != 0) {
                fill(&mut row, &test, bucket);
            }
            for bucket in Bucket::all() {
                let served = row.lifetime() >= Duration::from_secs(EDGES[bucket.number()].into());
                let all = Bucket::all().take(bucket.number() + 1).all(|up_to| row.is_granted(up_to));
                prop_assert_eq!(served, all);
            }
        }
    }
}
