//! How often keys were asked for lately, in little memory.

/// A count-min sketch of four rows that forgets: how often keys were asked for lately, never
/// guessed too low by anything but the forgetting.
///
/// Counts end at 15. After ten times as many requests as there are entries, all are halved.
#[derive(Debug)]
pub(crate) struct Sketch {
    rows: [Vec<u8>; ROWS],
    mask: u64,
    counted: u64,
    sample: u64,
}

const ROWS: usize = 4;
const MOST: u8 = 15;
/// Counters in each row for one entry: with fewer, keys that were never asked for again look used.
const WIDTH: u64 = 4;
const SAMPLE: u64 = 10;
/// A sketch for more entries is no larger than this one: 4 × 64 MiB.
const MOST_ENTRIES: u64 = 1 << 24;

impl Sketch {
    /// Counts for a cache of so many entries.
    pub(crate) fn new(entries: u64) -> Self {
        let entries = entries.clamp(8, MOST_ENTRIES);
        let width = (entries * WIDTH).next_power_of_two();
        let row = || vec![0; usize::try_from(width).unwrap_or(usize::MAX)];
        Self {
            rows: [row(), row(), row(), row()],
            mask: width - 1,
            counted: 0,
            sample: entries * SAMPLE,
        }
    }

    /// Counts a request.
    pub(crate) fn count(&mut self, key: u32) {
        let mask = self.mask;
        let mut grew = false;
        for (row, place) in self.rows.iter_mut().zip(places(key, mask)) {
            if let Some(counter) = row.get_mut(place)
                && *counter < MOST
            {
                *counter += 1;
                grew = true;
            }
        }
        if grew {
            self.counted += 1;
            if self.counted >= self.sample {
                self.halve();
            }
        }
    }

    /// Returns how often a key was counted lately, or a little more.
    pub(crate) fn frequency(&self, key: u32) -> u8 {
        let rows = self.rows.iter().zip(places(key, self.mask));
        let counters = rows.filter_map(|(row, place)| row.get(place));
        counters.min().copied().unwrap_or(0)
    }

    fn halve(&mut self) {
        for counter in self.rows.iter_mut().flatten() {
            *counter /= 2;
        }
        self.counted /= 2;
    }
}

/// Where a key is counted, row by row.
fn places(key: u32, mask: u64) -> impl Iterator<Item = usize> {
    // keys are 0, 1, 2…: neighbours must not meet in every row
    (1..).map(move |row: u64| {
        let mixed = mix(u64::from(key) ^ (row << 32)) & mask;
        usize::try_from(mixed).unwrap_or(usize::MAX)
    })
}

/// Spreads a number over all bits, by the finalizer of splitmix64.
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_guessed_too_low_before_the_first_halving(
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
    fn most_guesses_are_right() {
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
    fn what_was_is_halved_in_time() {
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
