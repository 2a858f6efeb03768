//! What all services of one layer share, and what they decide by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{ErrorKind, ToolCall, ToolError, ToolOutput};
use tower::retry::budget::Budget;

use super::HedgeConfig;
use super::measures::Measures;
use super::quantile::Quantile;
use crate::{RetryPolicy, TokenBucket};

/// What all services of one layer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: HedgeConfig,
    budget: RetryPolicy,
    /// No retry layer pays into the budget.
    pays: bool,
    measures: Measures,
    pub(crate) counts: Counts,
}

/// Counts what became of hedges.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) no_budget: AtomicU64,
    pub(crate) no_server: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) won: AtomicU64,
}

/// What became of the hedges of one layer, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HedgeStats {
    /// Not sent, for lack of budget.
    pub no_budget: u64,
    /// Not sent, because no other server could take the call.
    pub no_server: u64,
    /// Sent.
    pub sent: u64,
    /// Of those sent, how many answered first.
    pub won: u64,
}

impl Shared {
    /// Shares the budget of a retry layer, or has one of its own. `config` is valid.
    pub(crate) fn new(config: HedgeConfig, budget: Option<RetryPolicy>) -> Self {
        Self {
            config,
            pays: budget.is_none(),
            budget: budget.unwrap_or_default(),
            measures: Measures::new(),
            counts: Counts::default(),
        }
    }

    /// Returns the measure of a call's tool, if the call may be hedged at all.
    pub(crate) fn measure(&self, call: &ToolCall) -> Option<Arc<Quantile>> {
        may_hedge(call).then(|| self.measures.of(call.tool()))
    }

    /// Returns how long to wait before a hedge. `None` until enough is known.
    pub(crate) fn delay(&self, measure: &Quantile) -> Option<Duration> {
        measure.value().map(|slow| slow.max(self.config.min_delay))
    }

    pub(crate) fn observe(&self, measure: &Quantile, took: Duration) {
        let HedgeConfig {
            percentile,
            min_observations,
            ..
        } = self.config;
        measure.observe(took, percentile, min_observations);
    }

    /// Pays for a call, where nobody else does.
    pub(crate) fn deposit(&self, call: &ToolCall) {
        if self.pays {
            self.budget.with_budget(call, TokenBucket::deposit);
        }
    }

    pub(crate) fn withdraw(&self, call: &ToolCall) -> bool {
        self.budget.with_budget(call, TokenBucket::withdraw)
    }

    pub(crate) fn refund(&self, call: &ToolCall) {
        self.budget.with_budget(call, TokenBucket::refund);
    }

    pub(crate) fn stats(&self) -> HedgeStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        HedgeStats {
            no_budget: read(&self.counts.no_budget),
            no_server: read(&self.counts.no_server),
            sent: read(&self.counts.sent),
            won: read(&self.counts.won),
        }
    }
}

/// Says whether a second attempt of this call may run beside the first.
fn may_hedge(call: &ToolCall) -> bool {
    let plan = call.plan();
    !plan.is_write()
        && plan.is_retryable()
        && !call.purpose().is_background()
        && !call.attempt().elsewhere_only
}

/// Says whether an attempt that ended so tells how long the tool takes: it answered, or was given up
/// on after a time. A failure says nothing, however soon or late it comes.
pub(crate) fn is_observation(result: &Result<ToolOutput, ToolError>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::Timeout,
    }
}

/// Chooses between two failures of one call.
pub(crate) fn more_telling(first: ToolError, hedge: ToolError) -> ToolError {
    use callward_core::Delivery::NotSent;
    // "not sent" is true of the call only if it is true of both
    match (first.delivery(), hedge.delivery()) {
        (NotSent, delivery) if delivery != NotSent => hedge,
        _ => first,
    }
}
