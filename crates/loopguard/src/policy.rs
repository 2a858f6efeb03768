//! What the end of a call counts as: a pure function.

use std::borrow::Cow;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};

/// What the end of a call counts as.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a call succeeds, fails, or says nothing about itself"
)]
pub enum Verdict<'a> {
    /// It failed, and this is what the server or the runtime said of it.
    Fail(Cow<'a, str>),
    /// It says nothing about this call: it was cancelled, or may pass later.
    Ignore,
    /// It succeeded.
    Succeed,
}

/// Decides what the end of a call counts as. See the table of this crate.
///
/// ```
/// use callward_core::{Delivery, ErrorKind, ToolError};
/// use callward_loopguard::{Verdict, classify};
///
/// let refused = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, "`id` is missing");
/// assert_eq!(classify(&Err(refused)), Verdict::Fail("`id` is missing".into()));
/// let busy = ToolError::new(ErrorKind::RateLimited, Delivery::Answered, "slow down");
/// assert_eq!(classify(&Err(busy)), Verdict::Ignore);
/// ```
#[must_use]
pub fn classify(result: &Result<ToolOutput, ToolError>) -> Verdict<'_> {
    match result {
        Ok(output) if output.is_error() => Verdict::Fail(output.to_text().into()),
        Ok(_) => Verdict::Succeed,
        Err(error) if is_never(error) => Verdict::Fail(error.message().into()),
        Err(_) => Verdict::Ignore,
    }
}

/// Says whether a write that ended so may have changed what other calls find: it succeeded, or its
/// outcome is not known. A fault that a server reports is no promise that nothing happened.
pub(crate) fn may_have_changed(result: &Result<ToolOutput, ToolError>) -> bool {
    match result {
        Ok(output) => !output.is_error(),
        Err(error) => match error.delivery() {
            Delivery::NotSent => false,
            Delivery::Unknown => true,
            Delivery::Answered => matches!(
                error.kind(),
                ErrorKind::Protocol
                    | ErrorKind::ServerFault
                    | ErrorKind::Timeout
                    | ErrorKind::TooLarge
            ),
        },
    }
}

/// Says whether an error is the call's own, so that the next one will end alike: it got to a server
/// and came to nothing, and nobody said to come back later.
fn is_never(error: &ToolError) -> bool {
    let of_the_call = match error.kind() {
        ErrorKind::ConnectionLost
        | ErrorKind::InvalidCall
        | ErrorKind::OutcomeUnknown
        | ErrorKind::Protocol
        | ErrorKind::ServerFault
        | ErrorKind::Timeout
        | ErrorKind::TooLarge
        | ErrorKind::Unauthorized
        | ErrorKind::UnknownTool => true,
        // also what a later version adds: unknown kinds hold nobody back
        _ => false,
    };
    of_the_call && error.delivery() != Delivery::NotSent && error.retry_after().is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NEVER: [ErrorKind; 9] = [
        ErrorKind::ConnectionLost,
        ErrorKind::InvalidCall,
        ErrorKind::OutcomeUnknown,
        ErrorKind::Protocol,
        ErrorKind::ServerFault,
        ErrorKind::Timeout,
        ErrorKind::TooLarge,
        ErrorKind::Unauthorized,
        ErrorKind::UnknownTool,
    ];
    const LATER: [ErrorKind; 8] = [
        ErrorKind::BreakerOpen,
        ErrorKind::Cancelled,
        ErrorKind::ConnectFailed,
        ErrorKind::DeadlineExceeded,
        ErrorKind::Internal,
        ErrorKind::NoEligibleServer,
        ErrorKind::Overloaded,
        ErrorKind::RateLimited,
    ];

    fn fails(error: ToolError) -> bool {
        matches!(classify(&Err(error)), Verdict::Fail(_))
    }

    #[test]
    fn what_got_there_and_came_to_nothing_counts_unless_it_says_later() {
        for delivery in [Delivery::Answered, Delivery::Unknown] {
            for kind in NEVER {
                let error = ToolError::new(kind, delivery, "x");
                assert!(fails(error.clone()), "{kind} {delivery}");
                assert!(
                    !fails(error.with_retry_after(Duration::from_secs(1))),
                    "{kind}"
                );
            }
            for kind in LATER {
                assert!(
                    !fails(ToolError::new(kind, delivery, "x")),
                    "{kind} {delivery}"
                );
            }
        }
    }

    #[test]
    fn what_was_not_sent_counts_as_nothing() {
        for kind in NEVER.into_iter().chain(LATER) {
            assert!(
                !fails(ToolError::new(kind, Delivery::NotSent, "x")),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_write_may_have_changed_something_unless_it_was_refused() {
        use Delivery::{Answered, NotSent, Unknown};
        assert!(may_have_changed(&Ok(ToolOutput::text("x"))));
        assert!(!may_have_changed(&Ok(ToolOutput::error_text("x"))));
        for kind in NEVER.into_iter().chain(LATER) {
            let of = |delivery| may_have_changed(&Err(ToolError::new(kind, delivery, "x")));
            assert!(!of(NotSent) && of(Unknown), "{kind}");
            let fault = [
                ErrorKind::Protocol,
                ErrorKind::ServerFault,
                ErrorKind::Timeout,
                ErrorKind::TooLarge,
            ];
            assert_eq!(of(Answered), fault.contains(&kind), "{kind}");
        }
    }

    #[test]
    fn an_answer_counts_by_what_it_says_of_itself() {
        assert_eq!(classify(&Ok(ToolOutput::text("x"))), Verdict::Succeed);
        let failed = Ok(ToolOutput::error_text("no such order"));
        assert_eq!(classify(&failed), Verdict::Fail("no such order".into()));
    }
}
