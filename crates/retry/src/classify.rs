//! Whether a failure may be retried: a pure function of the tool's rule and the failure.

use std::time::Duration;

use callward_core::{Delivery, RetryRule, ToolError};

/// What to do about a failure, budget and deadline aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a failure is given to the caller, or the call is retried"
)]
pub enum Verdict {
    /// Give the failure to the caller.
    Give,
    /// Retry the call.
    Retry {
        /// Not sooner than this, as the server or a limiter asked.
        floor: Option<Duration>,
    },
}

/// Decides about one failure of a tool with this rule.
///
/// An error that already counts attempts has been through a retry: it is given on, so that nested
/// retries do not multiply. The time a breaker states is a floor like any other: that it is heard of
/// here means that there was no other server to go to, and that this is the first of them to be
/// asked again.
///
/// ```
/// use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
/// use callward_retry::{Verdict, classify};
///
/// let timeout = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s");
/// assert_eq!(classify(RetryRule::Safe, &timeout), Verdict::Retry { floor: None });
/// assert_eq!(classify(RetryRule::OnlyUnsent, &timeout), Verdict::Give);
/// ```
#[must_use]
pub fn classify(rule: RetryRule, error: &ToolError) -> Verdict {
    let allowed = match rule {
        RetryRule::Safe => true,
        RetryRule::OnlyUnsent => error.delivery() == Delivery::NotSent,
        // also what a later version adds: unknown rules retry nothing
        _ => false,
    };
    if !allowed || !error.kind().is_transient() || error.attempts() > 0 {
        return Verdict::Give;
    }
    Verdict::Retry {
        floor: error.retry_after(),
    }
}

#[cfg(test)]
mod tests {
    use callward_core::ErrorKind;

    use super::*;

    #[test]
    fn a_stated_time_is_a_floor_whoever_states_it() {
        let wait = Duration::from_secs(7);
        let stated = |kind, delivery| ToolError::new(kind, delivery, "x").with_retry_after(wait);
        let limited = stated(ErrorKind::RateLimited, Delivery::Answered);
        assert_eq!(
            classify(RetryRule::Safe, &limited),
            Verdict::Retry { floor: Some(wait) }
        );
        let open = stated(ErrorKind::BreakerOpen, Delivery::NotSent);
        assert_eq!(
            classify(RetryRule::Safe, &open),
            Verdict::Retry { floor: Some(wait) }
        );
    }

    #[test]
    fn an_error_that_was_already_retried_is_given_on() {
        let error = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "x");
        assert_eq!(
            classify(RetryRule::Safe, &error.with_attempts(3)),
            Verdict::Give
        );
    }
}
