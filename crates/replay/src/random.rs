//! Numbers that look random and are the same each time.

use crate::policies::mix;

/// Numbers from a seed: splitmix64, so that a workload is the same on every machine and after every
/// update of a library.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // the remainder of 2^64 is nothing against the numbers asked for here
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// Returns a number from 0 to 1, 1 excluded.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Draws 0, 1, 2… so that number `n` comes in proportion to `1 / (n + 1)^exponent`.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    /// How likely it is that a number is this one or a smaller one.
    up_to: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(numbers: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=numbers)
            .map(|n| {
                sum += f64::from(n).powf(-exponent);
                sum
            })
            .collect();
        for share in &mut up_to {
            *share /= sum;
        }
        Self { up_to }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let share = random.share();
        let place = self.up_to.partition_point(|up_to| *up_to <= share);
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        // what a workload is must not change unnoticed
        assert_eq!(Random::new(1).below(1_000_000), 564_846);
    }

    #[test]
    fn small_numbers_come_as_often_as_the_exponent_says() {
        let (zipf, mut random) = (Zipf::new(1000, 1.0), Random::new(7));
        let mut counts = vec![0_u32; 1000];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        // 1 in 7.49, and half of that
        assert!((12_800..13_900).contains(&counts[0]), "{}", counts[0]);
        assert!((6_400..6_950).contains(&counts[1]), "{}", counts[1]);
        assert!(counts[990..].iter().sum::<u32>() > 50);
    }
}
