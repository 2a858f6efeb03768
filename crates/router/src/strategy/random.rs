//! Any, by weight.

use super::{Strategy, draw};
use crate::candidates::Candidates;

/// Any server, each as often as its weight says.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Random;

impl Strategy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        draw::one(candidates, &candidates.indexes())
    }
}
