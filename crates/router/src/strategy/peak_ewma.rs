//! The better of two, by what calls there take.

use super::Strategy;
use crate::eligible::Eligible;

/// The better of two servers that are drawn at random.
#[derive(Debug, Clone, Default)]
pub struct PeakEwma {
    _private: (),
}

impl PeakEwma {
    /// Makes it with its defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { _private: () }
    }
}

impl Strategy for PeakEwma {
    fn name(&self) -> &'static str {
        "peak_ewma"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        for _ in 0..PAIRS {
            let (one, other) = (among.draw()?, among.draw()?);
            match (among.fits(one), among.fits(other)) {
                (true, true) => {
                    let load = |index| among.server(index).map(crate::Endpoint::in_flight);
                    return Some(if load(other) < load(one) { other } else { one });
                }
                (true, false) => return Some(one),
                (false, true) => return Some(other),
                (false, false) => {}
            }
        }
        let (index, _) = among.fit().min_by_key(|(_, server)| server.in_flight())?;
        Some(index)
    }
}

/// So many pairs are drawn before all servers are looked at.
const PAIRS: usize = 4;
