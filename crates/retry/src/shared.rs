//! What all calls of one retry layer share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{Share, ToolCall};
use tokio::time::Instant;

use crate::budget::{Budgets, Hold};
use crate::deadline::Outlook;
use crate::pause::Returns;
use crate::schedule::Running;
use crate::share::Paid;
use crate::stats::Counters;
use crate::{MakeSchedule, RetryConfig};

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RetryConfig,
    pub(crate) schedule: Option<Arc<dyn MakeSchedule>>,
    pub(crate) budgets: Budgets,
    pub(crate) seeds: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) returns: Returns,
}

impl Shared {
    /// No two calls get the same numbers: the seeds are a counter, scattered one to one.
    pub(crate) fn schedule(&self, call: &ToolCall) -> Running {
        match &self.schedule {
            Some(theirs) => Running::Theirs(theirs.schedule().into()),
            None => {
                let seed = scatter(self.seeds.fetch_add(1, Ordering::Relaxed));
                let first = call.plan().limits.first_backoff;
                Running::Ours(self.config.backoff.pauses(first, seed))
            }
        }
    }

    /// Says whether the deadline of a call has to last for several attempts. Where one that ran out
    /// of time could not be retried, there is nothing to save for.
    pub(crate) fn splits(&self, call: &ToolCall) -> bool {
        call.deadline().is_some()
            && self.config.max_attempts > 1
            && call.plan().is_retryable()
            && !call.purpose().is_background()
    }

    /// Says how long the attempt that begins then, or waits from then on, may take, if another one
    /// follows.
    pub(crate) fn share_out(
        self: &Arc<Self>,
        call: &mut ToolCall,
        begin: Instant,
        waits: bool,
        refused: u32,
    ) {
        let limits = &call.plan().limits;
        let (first, retry) = (limits.first_backoff, retry_of(call));
        let outlook = left(call, || begin).map(|left| Outlook {
            left,
            attempts: (self.config.max_attempts.saturating_add(refused)).saturating_sub(retry),
            pause: match self.schedule {
                // nobody knows: it is asked when the time has come
                Some(_) => first,
                None => self.config.backoff.longest(first, retry),
            },
            usual: limits.estimated_duration,
            least: first,
        });
        let paid = |outlook: Outlook| {
            let (shared, tool) = (self.clone(), call.tool().clone());
            let hold = move || shared.budgets.hold(tool.set(), &shared.config);
            Some(Share::new(Arc::new(Paid::of(outlook, begin, waits, hold)?)))
        };
        call.attempt_mut().share = outlook.and_then(paid);
    }

    /// Takes a retry of the call out of the budget.
    pub(crate) fn hold(&self, call: &ToolCall) -> Option<Hold> {
        self.budgets.hold(call.tool().set(), &self.config)
    }
}

/// Returns the number of the retry that would follow the current attempt, counted from 0.
pub(crate) fn retry_of(call: &ToolCall) -> u32 {
    call.attempt().number.saturating_sub(1)
}

/// Returns how far away the deadline is at a time, if there is one.
pub(crate) fn left(call: &ToolCall, at: impl FnOnce() -> Instant) -> Option<Duration> {
    let deadline = call.deadline()?;
    Some(deadline.saturating_duration_since(at().into_std()))
}

/// Sends neighbouring numbers far apart, no two to the same place (the finisher of SplitMix64). The
/// generator adds a constant for each draw, so neighbouring seeds alone could overlap.
const fn scatter(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
