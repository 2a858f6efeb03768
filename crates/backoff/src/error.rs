//! Errors of that crate as ours, and ours as that crate's.

use std::fmt::Display;

use backoff::Error;
use callward_core::{Delivery, ErrorKind, RetryRule, ToolError};
use callward_retry::{Verdict, classify};

/// Takes what a service of one's own failed with, and how far the call got.
///
/// | error | kind | retried |
/// | --- | --- | --- |
/// | `Transient` | [`ServerFault`](ErrorKind::ServerFault), with its time as `Retry-After` | if the tool is safe to retry, or the call was not sent and may then go elsewhere |
/// | `Permanent` | [`InvalidCall`](ErrorKind::InvalidCall) | never |
///
/// What was not sent says so: [`Delivery::NotSent`]. A service that may have begun, and does not know
/// how far it got, says [`Delivery::Unknown`], and one that answered [`Delivery::Answered`].
///
/// ```
/// use std::time::Duration;
/// use callward_backoff::from_backoff;
/// use callward_core::{Delivery, RetryRule};
/// use callward_retry::{Verdict, classify};
///
/// let busy = backoff::Error::retry_after("the printer is busy", Duration::from_secs(2));
/// let error = from_backoff(busy, Delivery::Unknown);
/// assert_eq!(error.message(), "the printer is busy");
/// // whoever prints again may print twice
/// assert_eq!(classify(RetryRule::Never, &error), Verdict::Give);
/// ```
#[must_use]
pub fn from_backoff<E: Display>(error: Error<E>, delivery: Delivery) -> ToolError {
    match error {
        Error::Permanent(error) => {
            ToolError::new(ErrorKind::InvalidCall, delivery, error.to_string())
        }
        Error::Transient { err, retry_after } => {
            let error = ToolError::new(ErrorKind::ServerFault, delivery, err.to_string());
            match retry_after {
                Some(wait) => error.with_retry_after(wait),
                None => error,
            }
        }
    }
}

/// Says of one of our errors, for a retry of that crate, whether trying again may help and is safe.
///
/// It is what the retry layer would decide about a tool with this rule, budget and deadline aside: an
/// error that would be retried is transient, with its floor as `retry_after`; any other is
/// permanent.
#[must_use]
pub fn to_backoff(rule: RetryRule, error: ToolError) -> Error<ToolError> {
    match classify(rule, &error) {
        Verdict::Give => Error::Permanent(error),
        Verdict::Retry { floor } => Error::Transient {
            err: error,
            retry_after: floor,
        },
    }
}

/// Takes one of our errors back out, as what that crate made of it: a permanent one will not be
/// retried by any retry layer, and a transient one as before, with its time as `Retry-After`.
#[must_use]
pub fn pass_on(error: Error<ToolError>) -> ToolError {
    match error {
        // an error that counts attempts has been through a retry
        Error::Permanent(error) => {
            let attempts = error.attempts().max(1);
            error.with_attempts(attempts)
        }
        Error::Transient { err, retry_after } => match retry_after {
            Some(wait) => err.with_retry_after(wait),
            None => err,
        },
    }
}
