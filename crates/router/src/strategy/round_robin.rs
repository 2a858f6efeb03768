//! Each in turn.

use super::Strategy;
use crate::candidates::Candidates;

/// Each server in turn, whatever the weights and whatever the tool: of as many consecutive calls as
/// there are candidates, each gets one.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct RoundRobin;

impl Strategy for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let count = u64::try_from(candidates.len()).ok()?;
        usize::try_from(candidates.turn().checked_rem(count)?).ok()
    }
}
