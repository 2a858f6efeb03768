//! The fewest calls in flight.

use super::{Strategy, draw};
use crate::candidates::Candidates;

/// The server with the fewest calls in flight for its weight; equals take turns by weight.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct LeastConnections;

impl Strategy for LeastConnections {
    fn name(&self) -> &'static str {
        "least_connections"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        // without turns, the first would get every call as long as nothing is in flight
        let first = draw::in_turn(candidates, candidates.turn())?;
        let load = |index: &usize| {
            let weight = candidates.weight(*index).max(1) as f64;
            candidates.in_flight(*index) as f64 / weight
        };
        let in_turn = (first..candidates.len()).chain(0..first);
        in_turn.min_by(|one, other| load(one).total_cmp(&load(other)))
    }
}
