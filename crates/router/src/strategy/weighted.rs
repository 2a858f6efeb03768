//! Each in turn, in proportion to its weight.

use super::Strategy;
use crate::eligible::Eligible;
use crate::turn;

/// Each server in proportion to its weight: exact over a cycle, and spread evenly within it.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Weighted;

impl Strategy for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        let weight = |index| among.server(index).map_or(0, |s| s.weight().get());
        let index = turn::by_weight(|| among.turn(), among.len(), weight(0), weight);
        if among.fits(index) {
            return Some(index);
        }
        let (index, _) = among.fit().next()?;
        Some(index)
    }
}
