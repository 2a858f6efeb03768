//! Which key a call asks for.

use std::str::FromStr;

/// How keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keys {
    /// Never the same twice.
    Distinct,
    /// One of 1,000, where few are asked for often: Zipf with exponent 0.99.
    Zipf,
    /// Always the same.
    One,
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "distinct" => Ok(Self::Distinct),
            "zipf" => Ok(Self::Zipf),
            "one" => Ok(Self::One),
            other => Err(format!("`{other}` is not one of distinct, zipf, one")),
        }
    }
}

const RANKS: usize = 1000;
const EXPONENT: f64 = 0.99;

/// The keys of one caller, from a seed.
#[derive(Debug)]
pub(crate) struct Sequence {
    keys: Keys,
    prefix: String,
    made: u64,
    state: u64,
    /// Of each rank, the share of draws up to it.
    shares: Vec<f64>,
}

impl Sequence {
    /// `prefix` keeps the distinct keys of callers and rounds apart.
    pub(crate) fn new(keys: Keys, prefix: String, seed: u64) -> Self {
        let mut shares = Vec::new();
        if keys == Keys::Zipf {
            let mut sum = 0.0;
            shares.extend((1..=RANKS).map(|rank| {
                sum += (rank as f64).powf(-EXPONENT);
                sum
            }));
            for share in &mut shares {
                *share /= sum;
            }
        }
        Self {
            keys,
            prefix,
            made: 0,
            state: seed,
            shares,
        }
    }

    pub(crate) fn next(&mut self) -> String {
        self.made += 1;
        match self.keys {
            Keys::Distinct => format!("{}-{}", self.prefix, self.made),
            Keys::Zipf => {
                let drawn = self.draw();
                format!("z{}", self.shares.partition_point(|share| *share < drawn))
            }
            Keys::One => "one".to_owned(),
        }
    }

    /// From 0.0 up to 1.0, by `SplitMix64`.
    fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn take(keys: Keys, count: usize) -> Vec<String> {
        let mut sequence = Sequence::new(keys, "p".to_owned(), 1);
        (0..count).map(|_| sequence.next()).collect()
    }

    #[test]
    fn distinct_keys_are_and_one_key_is_one() {
        assert_eq!(
            take(Keys::Distinct, 1000)
                .iter()
                .collect::<HashSet<_>>()
                .len(),
            1000
        );
        assert_eq!(
            take(Keys::One, 1000).iter().collect::<HashSet<_>>().len(),
            1
        );
    }

    #[test]
    fn the_first_rank_is_drawn_as_often_as_zipf_says() {
        let mut counts: HashMap<String, u32> = HashMap::new();
        for key in take(Keys::Zipf, 100_000) {
            *counts.entry(key).or_default() += 1;
        }
        // 1 / sum of rank^-0.99 over 1,000 ranks = 0.1296
        assert!((12_000..14_000).contains(&counts["z0"]), "{}", counts["z0"]);
        assert!(counts.len() > 950 && !counts.contains_key("z1000"));
    }
}
