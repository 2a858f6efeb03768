//! What the outcome of an attempt says about its server.

use std::time::Duration;

use callward_core::{CallPlan, Delivery, ErrorKind, Share, ToolCall, ToolError, ToolOutput};

/// What the outcome of an attempt says about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an outcome speaks for the server, against it, or not at all"
)]
pub enum Verdict {
    /// The server failed.
    Fault,
    /// Neither: the call was refused, dropped, or told to come later.
    Nothing,
    /// The server works, whatever it answered.
    Good,
}

/// Judges an outcome as the breakers of tools do.
///
/// A tool's own failure is an answer, and so is a refusal that blames the caller: a server that reads
/// a call and finds fault with it works.
#[must_use]
pub fn judge(result: &Result<ToolOutput, ToolError>) -> Verdict {
    let Err(error) = result else {
        return Verdict::Good;
    };
    if error.kind().blames_server() {
        return Verdict::Fault;
    }
    match (error.kind(), error.delivery()) {
        (
            ErrorKind::InvalidCall
            | ErrorKind::TooLarge
            | ErrorKind::Unauthorized
            | ErrorKind::UnknownTool,
            Delivery::Answered,
        ) => Verdict::Good,
        _ => Verdict::Nothing,
    }
}

/// Returns the attempt's share of the time to the caller's deadline, if it is so short that the
/// attempt may be ended although the server is well.
pub(crate) fn hurry(call: &ToolCall) -> Option<Share> {
    let share = call.attempt().share.as_ref()?;
    let limit = PATIENCE.min(call.plan().limits.attempt_timeout);
    (share.time() < limit).then(|| share.clone())
}

/// Judges an outcome; a timeout that tells of the caller's hurry, as [`hurry`] has it, is nothing.
pub(crate) fn judge_in_hurry(
    result: &Result<ToolOutput, ToolError>,
    hurry: Option<&Share>,
) -> Verdict {
    match result {
        Err(error) if error.kind() == ErrorKind::Timeout && hurry.is_some_and(Share::has_ended) => {
            Verdict::Nothing
        }
        _ => judge(result),
    }
}

/// Whether a call may be the one that finds out how a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Risk {
    /// It changes nothing, or may be sent again if its outcome is unknown.
    Safe,
    /// It must not run twice: it finds out only where nothing else can.
    Write,
}

impl Risk {
    pub(crate) const fn of(plan: &CallPlan) -> Self {
        if plan.is_write() && !plan.is_retryable() {
            Self::Write
        } else {
            Self::Safe
        }
    }
}

/// A server that has so much time and does not answer is at fault. The breakers' number.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table() {
        use Delivery::{Answered, NotSent, Unknown};
        use Verdict::{Fault, Good, Nothing};
        let cases = [
            (ErrorKind::ConnectFailed, NotSent, Fault),
            (ErrorKind::ConnectionLost, Unknown, Fault),
            (ErrorKind::Protocol, Answered, Fault),
            (ErrorKind::ServerFault, Answered, Fault),
            (ErrorKind::Timeout, Unknown, Fault),
            (ErrorKind::InvalidCall, Answered, Good),
            (ErrorKind::TooLarge, Answered, Good),
            (ErrorKind::Unauthorized, Answered, Good),
            (ErrorKind::UnknownTool, Answered, Good),
            (ErrorKind::InvalidCall, NotSent, Nothing),
            (ErrorKind::RateLimited, Answered, Nothing),
            (ErrorKind::RateLimited, NotSent, Nothing),
            (ErrorKind::BreakerOpen, NotSent, Nothing),
            (ErrorKind::Overloaded, NotSent, Nothing),
            (ErrorKind::Cancelled, Unknown, Nothing),
            (ErrorKind::DeadlineExceeded, Unknown, Nothing),
            (ErrorKind::Internal, Unknown, Nothing),
            (ErrorKind::OutcomeUnknown, Unknown, Nothing),
        ];
        for (kind, delivery, verdict) in cases {
            let result = Err(ToolError::new(kind, delivery, "x"));
            assert_eq!(judge(&result), verdict, "{kind}, {delivery}");
        }
        for answer in [ToolOutput::text("x"), ToolOutput::error_text("x")] {
            assert_eq!(judge(&Ok(answer)), Good);
        }
    }
}
