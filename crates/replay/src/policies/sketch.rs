//! Request frequencies in little memory.

/// A count-min sketch of four rows with aging. An estimate is never too low, except by aging.
///
/// Counters stop at 15. After ten times as many requests as entries, all counters are halved.
#[derive(Debug)]
pub(crate) struct Sketch {
    rows: [Vec<u8>; 4],
    mask: u64,
    counted: u64,
    sample: u64,
}

const MAX_COUNT: u8 = 15;
/// Counters in each row for one entry: fewer make new keys look used.
const WIDTH: u64 = 4;
const SAMPLE: u64 = 10;
/// A sketch for more entries is not a larger than this one: 4 × 64 MiB.
const MAX_ENTRIES: u64 = 1 << 24;

impl Sketch {
    /// Counts for a cache of `entries` entries.
    pub(crate) fn new(entries: u64) -> Self {
        let entries = entries.clamp(8, MAX_ENTRIES);
        let width = (entries * WIDTH).next_power_of_two();
        let row = vec![0; usize::try_from(width).unwrap_or(usize::MAX)];
        Self {
            rows: std::array::from_fn(|_| row.clone()),
            mask: width - 1,
            counted: 0,
            sample: entries * SAMPLE,
        }
    }

    /// Counts a request.
    pub(crate) fn count(&mut self, key: u32) {
        let mut grew = false;
        for (row, place) in self.rows.iter_mut().zip(places(key, self.mask)) {
            if let Some(counter) = row.get_mut(place).filter(|count| **count < MAX_COUNT) {
                *counter += 1;
                grew = true;
            }
        }
        self.counted += u64::from(grew);
        if self.counted >= self.sample {
            for counter in self.rows.iter_mut().flatten() {
                *counter /= 2;
            }
            self.counted /= 2;
        }
    }

    /// Estimates how often a key was counted lately.
    pub(crate) fn frequency(&self, key: u32) -> u8 {
        let rows = self.rows.iter().zip(places(key, self.mask));
        let counters = rows.filter_map(|(row, place)| row.get(place));
        counters.min().copied().unwrap_or(0)
    }
}

/// Returns the counter of a key in each row.
fn places(key: u32, mask: u64) -> impl Iterator<Item = usize> {
    (1..).map(move |row: u64| {
        // the finalizer of splitmix64: keys are 0, 1, 2…, and neighbours must not collide in all
        // rows
        let z = (u64::from(key) ^ (row << 32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) & mask).unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn estimates_are_not_too_low_before_the_first_halving(
            keys in proptest::collection::vec(0_u32..40, 0..79)
        ) {
            let mut sketch = Sketch::new(8);
            for key in &keys {
                sketch.count(*key);
            }
            for key in 0..40 {
                let true_count = keys.iter().filter(|other| **other == key).count();
                prop_assert!(usize::from(sketch.frequency(key)) >= true_count.min(15));
            }
        }
    }

    #[test]
    fn most_estimates_are_exact() {
        let mut sketch = Sketch::new(1000);
        for key in 0..1000 {
            sketch.count(key);
        }
        let wrong = (0..1000).filter(|key| sketch.frequency(*key) != 1).count();
        assert!(wrong < 50, "{wrong}");
        let seen = (1000..2000)
            .filter(|key| sketch.frequency(*key) > 0)
            .count();
        assert!(seen < 50, "{seen}");
    }

    #[test]
    fn counts_are_halved_after_a_sample() {
        let mut sketch = Sketch::new(8);
        for _ in 0..12 {
            sketch.count(7);
        }
        assert_eq!(sketch.frequency(7), 12);
        for key in 100..168 {
            sketch.count(key);
        }
        assert!(
            (6..=7).contains(&sketch.frequency(7)),
            "{}",
            sketch.frequency(7)
        );
    }
}
