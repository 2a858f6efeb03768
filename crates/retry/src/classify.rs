//! Whether a failure may be retried: a pure function of the tool's rule and the failure.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};

/// What to do about a failure, budget and deadline aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a failure is final, or it is not")]
pub enum RetryDecision {
    /// Return the failure to the caller.
    Fail,
    /// Retry the call.
    Retry {
        /// Not sooner than this, as the server or a limit asks.
        floor: Option<Duration>,
    },
}

/// Decides about one failure of a tool with this rule.
///
/// An error that counts attempts has been through a retry and is final, so that nested retries do
/// not multiply; so is one of a server that [lists
/// attempts](ToolError::was_retried_by_peer).
///
/// ```
/// use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
/// use callward_retry::{RetryDecision, classify};
///
/// let timeout = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s");
/// assert_eq!(classify(RetryRule::Safe, &timeout), RetryDecision::Retry { floor: None });
/// assert_eq!(classify(RetryRule::OnlyUnsent, &timeout), RetryDecision::Fail);
/// ```
#[must_use]
pub fn classify(rule: RetryRule, error: &ToolError) -> RetryDecision {
    let allowed = match rule {
        RetryRule::Safe => true,
        RetryRule::OnlyUnsent => error.delivery == Delivery::NotSent,
        // a rule of a later version retries nothing
        _ => false,
    };
    let was_retried = error.attempts > 0 || error.was_retried_by_peer();
    if !allowed || !error.kind.is_transient() || was_retried {
        return RetryDecision::Fail;
    }
    // an operator holds the breaker open: no probe will close it
    if error.kind == ErrorKind::BreakerOpen && error.retry_after.is_none() {
        return RetryDecision::Fail;
    }
    RetryDecision::Retry {
        floor: error.retry_after,
    }
}
