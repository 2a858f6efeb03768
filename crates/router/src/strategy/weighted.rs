//! Each in turn, in proportion to its weight.

use super::round_robin::TICKETS;
use super::{Strategy, any};
use crate::eligible::Eligible;

/// Each server in turn, in proportion to its weight, and spread: of as many successive calls as all
/// weights together, each gets as many as its weight.
///
/// Weights with a common divisor need as many times fewer calls: among 50, 50 and 25, five.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Weighted;

impl Strategy for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        for _ in 0..TICKETS {
            let index = among.in_turn_by_weight()?;
            if among.fits(index) {
                return Some(index);
            }
        }
        any::by_weight(among, |index| among.fits(index))
    }
}
