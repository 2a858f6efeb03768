//! What became of calls whose first attempt failed, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::give::Reason;

/// What became of a call whose first attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryOutcome {
    /// The runtime made the call by itself, and nobody would miss it.
    Background,
    /// Given up: the breakers of all servers are open for longer than is waited.
    BreakerOpen,
    /// Given up: the budget is spent.
    Budget,
    /// Given up: a retry would not be over before the deadline.
    Deadline,
    /// Given up: all attempts that are allowed were made.
    Exhausted,
    /// Given up: the failure will not pass, or the tool must not be called again.
    NotRetryable,
    /// A later attempt was answered.
    Recovered,
    /// Given up: the server asked to be left alone for longer than is waited.
    RetryAfter,
    /// Given up: somebody else's schedule has no further pause.
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

impl From<&Reason> for RetryOutcome {
    fn from(reason: &Reason) -> Self {
        match reason {
            Reason::Attempts => Self::Exhausted,
            Reason::Background => Self::Background,
            Reason::Budget => Self::Budget,
            Reason::Deadline { .. } => Self::Deadline,
            Reason::Open { .. } | Reason::StillOpen { .. } => Self::BreakerOpen,
            Reason::RetryAfter { .. } => Self::RetryAfter,
            Reason::Rule => Self::NotRetryable,
            Reason::Schedule => Self::Schedule,
        }
    }
}

/// What a [`RetryLayer`](crate::RetryLayer) did since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetryStats {
    /// Attempts after a call's first.
    pub retries: u64,
    /// Calls whose first attempt failed and that ended. One that was dropped before is none of them.
    pub outcomes: RetryOutcomes,
}

/// How many calls had which outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryOutcomes([u64; RetryOutcome::ALL.len()]);

impl RetryOutcomes {
    /// Returns how many calls had this outcome.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each variant")]
    pub const fn get(&self, outcome: RetryOutcome) -> u64 {
        self.0[outcome as usize]
    }

    /// Returns each outcome and how many calls had it.
    pub fn iter(&self) -> impl Iterator<Item = (RetryOutcome, u64)> {
        RetryOutcome::ALL.iter().copied().zip(self.0)
    }
}

/// Written on the way of failures only: calls that succeed at once count nothing.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    retries: AtomicU64,
    outcomes: [AtomicU64; RetryOutcome::ALL.len()],
}

impl Counters {
    pub(crate) fn retries(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    #[expect(clippy::indexing_slicing, reason = "there is a place for each variant")]
    pub(crate) fn ends(&self, outcome: RetryOutcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> RetryStats {
        let mut outcomes = RetryOutcomes::default();
        for (count, counter) in outcomes.0.iter_mut().zip(&self.outcomes) {
            *count = counter.load(Ordering::Relaxed);
        }
        RetryStats {
            retries: self.retries.load(Ordering::Relaxed),
            outcomes,
        }
    }
}
