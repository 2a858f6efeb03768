//! The heaviest.

use super::Strategy;
use crate::candidates::Candidates;

/// The heaviest server, and the next one when that is not available. Of equals, the one that was
/// added first.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Priority;

impl Strategy for Priority {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        // heaviest first
        (!candidates.is_empty()).then_some(0)
    }
}
