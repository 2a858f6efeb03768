//! The outcomes of calls whose first attempt failed, counted.

use callward_core::words;

words! {
    /// The outcome of a call whose first attempt failed.
    #[non_exhaustive]
    RetryOutcome {
        /// Given up: the runtime made the call itself.
        Background = "background",
        /// Given up: the breakers of all servers are open for longer than the call waits.
        BreakerOpen = "breaker_open",
        /// Given up: the budget is spent.
        Budget = "budget",
        /// Given up: a retry would not end before the deadline.
        Deadline = "deadline",
        /// Given up: all allowed attempts were made.
        Exhausted = "exhausted",
        /// Given up: the failure is not transient, or the tool is not safe to retry.
        NotRetryable = "not_retryable",
        /// A later attempt was answered.
        Recovered = "recovered",
        /// Given up: the stated `Retry-After` is longer than the call waits.
        RetryAfter = "retry_after",
        /// Given up: the custom schedule has no further pause.
        Schedule = "schedule",
    }
}

/// What a [`RetryLayer`](crate::RetryLayer) did since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetryStats {
    /// Attempts after the first of a call.
    pub retries: u64,
    /// Calls whose first attempt failed and that ended; a dropped call is not counted.
    pub outcomes: RetryOutcomes,
}

/// How many calls had which outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryOutcomes([u64; RetryOutcome::ALL.len()]);

impl RetryOutcomes {
    /// Returns each outcome and how many calls had it.
    pub fn iter(&self) -> impl Iterator<Item = (RetryOutcome, u64)> {
        RetryOutcome::ALL.iter().copied().zip(self.0)
    }

    pub(crate) const fn count(&mut self, outcome: RetryOutcome) {
        // one element per variant
        self.0[outcome as usize] += 1;
    }
}
