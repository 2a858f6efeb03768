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
/// not multiply.
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
        RetryRule::OnlyUnsent => error.delivery() == Delivery::NotSent,
        // a rule of a later version retries nothing
        _ => false,
    };
    if !allowed || !error.kind().is_transient() || error.attempts() > 0 {
        return RetryDecision::Fail;
    }
    // an operator holds the breaker open: no probe will close it
    if error.kind() == ErrorKind::BreakerOpen && error.retry_after().is_none() {
        return RetryDecision::Fail;
    }
    RetryDecision::Retry {
        floor: error.retry_after(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_floor_from_servers_and_from_breakers() {
        let wait = Duration::from_secs(7);
        let stated = |kind, delivery| ToolError::new(kind, delivery, "x").with_retry_after(wait);
        let limited = stated(ErrorKind::RateLimited, Delivery::Answered);
        assert_eq!(
            classify(RetryRule::Safe, &limited),
            RetryDecision::Retry { floor: Some(wait) }
        );
        let open = stated(ErrorKind::BreakerOpen, Delivery::NotSent);
        assert_eq!(
            classify(RetryRule::Safe, &open),
            RetryDecision::Retry { floor: Some(wait) }
        );
    }

    #[test]
    fn a_breaker_that_is_held_open_is_not_asked_again() {
        let held = ToolError::new(ErrorKind::BreakerOpen, Delivery::NotSent, "x");
        assert_eq!(classify(RetryRule::Safe, &held), RetryDecision::Fail);
    }

    #[test]
    fn an_error_that_was_already_retried_is_final() {
        let error = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "x");
        assert_eq!(
            classify(RetryRule::Safe, &error.with_attempts(3)),
            RetryDecision::Fail
        );
    }
}
