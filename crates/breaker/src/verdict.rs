//! What the outcome of a call says about the server.

use tollgate_core::{Delivery, ErrorKind, ToolError, ToolOutput};

/// What the outcome of a call says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an outcome speaks for the server, against it, or not at all"
)]
pub enum Verdict {
    /// The server failed.
    Failure,
    /// Neither: the call was refused, dropped, or told to come later.
    Nothing,
    /// The server works, whatever it answered.
    Success,
}

/// Judges the outcome of a call.
///
/// A refusal that blames the caller is a success: a server that reads a call and finds fault with
/// it works. If it counted as nothing, a half-open breaker before a healthy server could stay half
/// open for as long as callers make mistakes.
#[must_use]
pub fn judge(result: &Result<ToolOutput, ToolError>) -> Verdict {
    let Err(error) = result else {
        return Verdict::Success;
    };
    if error.kind().blames_server() {
        return Verdict::Failure;
    }
    match (error.kind(), error.delivery()) {
        (
            ErrorKind::InvalidCall | ErrorKind::Unauthorized | ErrorKind::UnknownTool,
            Delivery::Answered,
        ) => Verdict::Success,
        _ => Verdict::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table() {
        use Delivery::{Answered, NotSent, Unknown};
        let cases = [
            (ErrorKind::ConnectFailed, NotSent, Verdict::Failure),
            (ErrorKind::ConnectionLost, Unknown, Verdict::Failure),
            (ErrorKind::Protocol, Answered, Verdict::Failure),
            (ErrorKind::ServerFault, Answered, Verdict::Failure),
            (ErrorKind::Timeout, Unknown, Verdict::Failure),
            (ErrorKind::InvalidCall, Answered, Verdict::Success),
            (ErrorKind::Unauthorized, Answered, Verdict::Success),
            (ErrorKind::UnknownTool, Answered, Verdict::Success),
            (ErrorKind::InvalidCall, NotSent, Verdict::Nothing),
            (ErrorKind::RateLimited, Answered, Verdict::Nothing),
            (ErrorKind::RateLimited, NotSent, Verdict::Nothing),
            (ErrorKind::BreakerOpen, NotSent, Verdict::Nothing),
            (ErrorKind::Cancelled, Unknown, Verdict::Nothing),
            (ErrorKind::DeadlineExceeded, Unknown, Verdict::Nothing),
            (ErrorKind::Internal, Unknown, Verdict::Nothing),
            (ErrorKind::NoEligibleServer, NotSent, Verdict::Nothing),
            (ErrorKind::OutcomeUnknown, Unknown, Verdict::Nothing),
            (ErrorKind::Overloaded, NotSent, Verdict::Nothing),
        ];
        for (kind, delivery, expected) in cases {
            let error = ToolError::new(kind, delivery, "x");
            assert_eq!(judge(&Err(error)), expected, "{kind}, {delivery}");
        }
        assert_eq!(judge(&Ok(ToolOutput::text("x"))), Verdict::Success);
        assert_eq!(judge(&Ok(ToolOutput::error_text("x"))), Verdict::Success);
    }
}
