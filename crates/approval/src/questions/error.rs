//! How questions end.

use std::sync::Arc;
use std::time::Duration;

use callward_core::ClientRefusal;

use super::{Answer, Pending};
use crate::{Limit, StoreError};

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The question cannot be asked as it is.
    #[error("the question cannot be asked: {0}")]
    Invalid(String),
    /// Too many questions are open.
    #[error("too many questions are open ({0:?}); ask again once some of them have ended")]
    TooMany(Limit),
    /// The client cannot be asked this, or there is none.
    #[error("the client cannot be asked this: {0}")]
    Unsupported(&'static str),
    /// The person declines.
    #[error("the person declines to answer")]
    Declined,
    /// The question was cancelled, by the person or by this process.
    #[error("the question was cancelled")]
    Cancelled,
    /// No answer came in time.
    #[error("the person did not answer within {0:?}")]
    TimedOut(Duration),
    /// No answer fits the question.
    #[error("the answer does not fit the question: {0}")]
    Unfit(String),
    /// No open question waits for this answer of a page.
    #[error("no question waits for this answer; it has ended, or was answered")]
    NotFound,
    /// The client answers with an error.
    #[error("the client cannot ask: {0}")]
    Client(#[from] ClientRefusal),
    /// The system has no random bits.
    #[error(transparent)]
    NoRandomBits(#[from] StoreError),
}

callward_core::words! {
    /// How a question ended.
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    Outcome {
        /// It was answered.
        Accepted = "accepted",
        /// The person declined.
        Declined = "declined",
        /// No answer came in time.
        TimedOut = "timeout",
        /// It was cancelled, or its asker left.
        Cancelled = "cancelled",
        /// It could not be asked, or no answer did fit.
        Failed = "error",
    }
}

impl Outcome {
    pub(super) fn of(result: &Result<Answer, QuestionError>) -> Self {
        match result {
            Ok(_) => Self::Accepted,
            Err(QuestionError::Declined) => Self::Declined,
            Err(QuestionError::TimedOut(_)) => Self::TimedOut,
            Err(QuestionError::Cancelled) => Self::Cancelled,
            Err(_) => Self::Failed,
        }
    }
}

/// A question that is asked or ends. The answer is never here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The question.
    pub question: Arc<Pending>,
    /// How it ended; `None` when it is asked.
    pub outcome: Option<Outcome>,
}

impl Event {
    /// Returns the name of the event, such as `elicitationRequested`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.outcome {
            None => "elicitationRequested",
            Some(Outcome::Accepted | Outcome::Declined) => "elicitationResponded",
            Some(Outcome::TimedOut) => "elicitationTimeout",
            Some(Outcome::Cancelled) => "elicitationCancelled",
            Some(Outcome::Failed) => "elicitationError",
        }
    }
}
