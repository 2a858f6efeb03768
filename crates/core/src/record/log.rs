//! The decisions about one call, bounded.

use std::sync::Arc;

use super::CallRecord;
use crate::RouteDecision;
use crate::trail::Decision;

/// Decisions in the order they were made: of each stage the first ones, and the last.
#[derive(Debug, Default)]
pub(super) struct Log {
    decisions: Vec<Decision>,
    left_out: u32,
}

impl Log {
    pub(super) fn push(&mut self, decision: Decision) {
        let same = |kept: &Decision| kept.stage == decision.stage;
        let count = self.decisions.iter().filter(|kept| same(kept)).count();
        if count >= CallRecord::MOST_OF_A_STAGE
            && let Some(last) = self.decisions.iter().rposition(same)
        {
            let _replaced = self.decisions.remove(last);
            self.left_out = self.left_out.saturating_add(1);
        }
        self.decisions.push(decision);
    }

    pub(super) fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    pub(super) fn routes(&self) -> impl DoubleEndedIterator<Item = &Arc<RouteDecision>> {
        self.decisions.iter().filter_map(|kept| kept.route.as_ref())
    }

    pub(super) const fn left_out(&self) -> u32 {
        self.left_out
    }
}
