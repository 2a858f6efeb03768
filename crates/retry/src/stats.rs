//! The outcomes of calls whose first attempt failed, counted.

/// The outcome of a call whose first attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryOutcome {
    /// Given up: the runtime made the call itself.
    Background,
    /// Given up: the breakers of all servers are open for longer than the call waits.
    BreakerOpen,
    /// Given up: the budget is spent.
    Budget,
    /// Given up: a retry would not end before the deadline.
    Deadline,
    /// Given up: all allowed attempts were made.
    Exhausted,
    /// Given up: the failure is not transient, or the tool is not safe to retry.
    NotRetryable,
    /// A later attempt was answered.
    Recovered,
    /// Given up: the stated `Retry-After` is longer than the call waits.
    RetryAfter,
    /// Given up: the custom schedule has no further pause.
    Schedule,
}

impl RetryOutcome {
    /// All of them, in the order of their words.
    pub const ALL: &[Self] = &[
        Self::Background,
        Self::BreakerOpen,
        Self::Budget,
        Self::Deadline,
        Self::Exhausted,
        Self::NotRetryable,
        Self::Recovered,
        Self::RetryAfter,
        Self::Schedule,
    ];

    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::BreakerOpen => "breaker_open",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::Exhausted => "exhausted",
            Self::NotRetryable => "not_retryable",
            Self::Recovered => "recovered",
            Self::RetryAfter => "retry_after",
            Self::Schedule => "schedule",
        }
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

    #[expect(clippy::indexing_slicing, reason = "one element per variant")]
    pub(crate) const fn count(&mut self, outcome: RetryOutcome) {
        self.0[outcome as usize] += 1;
    }
}
