//! Each in turn, in proportion to its weight.

use super::{Strategy, draw};
use crate::candidates::Candidates;

/// Each server in turn, in proportion to its weight, and spread: of as many consecutive calls as
/// all weights together, each gets as many as its weight.
///
/// Weights with a common divisor need as many times fewer calls: among 50, 50 and 25, five.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Weighted;

impl Strategy for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        draw::in_turn(candidates, candidates.turn())
    }
}
