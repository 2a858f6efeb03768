//! Random numbers that are the same on every machine and with every version of a library.

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Returns a number from 0 to 1, 1 excluded.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(GAMMA);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
