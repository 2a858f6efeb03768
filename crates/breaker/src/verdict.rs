//! What the outcome of a call says about the server.

use callward_core::{Delivery, ErrorKind, ToolError};

/// What the outcome of a call says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The server failed.
    Failure,
    /// Neither: the call was refused, dropped, or rate-limited.
    Nothing,
    /// The server works; its answer does not matter.
    Success,
}

/// Judges the failure of a call.
///
/// A refusal that blames the caller is a success: a server that reads a call and finds fault with
/// it works. If it counted as nothing, a half-open breaker before a healthy server could stay half
/// open for as long as callers make mistakes.
pub(crate) fn judge_error(error: &ToolError) -> Verdict {
    use ErrorKind::{InvalidCall, TooLarge, Unauthorized, UnknownTool};
    match (error.kind, error.delivery) {
        (kind, _) if kind.blames_server() => Verdict::Failure,
        (InvalidCall | TooLarge | Unauthorized | UnknownTool, Delivery::Answered) => {
            Verdict::Success
        }
        _ => Verdict::Nothing,
    }
}

/// Judges the failure of a call, or of anything else that was asked of a server, as evidence about
/// the connection, whatever the tool did: as the breaker of a server does.
///
/// Only a failed or lost connection counts as a failure. An answer of any kind counts as a success,
/// also one that reports a fault or breaks the protocol. A timeout is neither: it may be the one
/// tool that is slow.
///
/// A connection that was lost after the call was sent may be the one tool, too, and the breaker of
/// a server so counts it once for each tool, where this function has only one word for a failure.
#[must_use]
pub fn judge_error_of_transport(error: &ToolError) -> Verdict {
    match (error.kind, error.delivery) {
        (ErrorKind::ConnectFailed | ErrorKind::ConnectionLost, _) => Verdict::Failure,
        // our own refusals were sent nowhere; the outcome of a cancelled call is unknown. A fault
        // that was reported is an answer, though a gateway that reports it may not know the outcome
        // of the call
        (ErrorKind::ServerFault, _) | (_, Delivery::Answered) => Verdict::Success,
        (_, Delivery::NotSent | Delivery::Unknown) => Verdict::Nothing,
    }
}

/// Returns `true` if the tool that was called may be the only cause of a lost connection: the
/// server had the call, or a part of it.
pub(crate) fn may_be_the_tool(error: &ToolError) -> bool {
    error.kind == ErrorKind::ConnectionLost && error.delivery != Delivery::NotSent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table() {
        use Delivery::{Answered, NotSent, Unknown};
        use Verdict::{Failure, Nothing, Success};
        let cases = [
            // what it says of the tool, and of the way to the server
            (ErrorKind::ConnectFailed, NotSent, Failure, Failure),
            (ErrorKind::ConnectionLost, NotSent, Failure, Failure),
            (ErrorKind::ConnectionLost, Unknown, Failure, Failure),
            (ErrorKind::Protocol, Answered, Failure, Success),
            (ErrorKind::ServerFault, Answered, Failure, Success),
            (ErrorKind::ServerFault, Unknown, Failure, Success),
            (ErrorKind::Timeout, Unknown, Failure, Nothing),
            (ErrorKind::InvalidCall, Answered, Success, Success),
            (ErrorKind::TooLarge, Answered, Success, Success),
            (ErrorKind::Unauthorized, Answered, Success, Success),
            (ErrorKind::UnknownTool, Answered, Success, Success),
            (ErrorKind::InvalidCall, NotSent, Nothing, Nothing),
            (ErrorKind::RateLimited, Answered, Nothing, Success),
            (ErrorKind::RateLimited, NotSent, Nothing, Nothing),
            (ErrorKind::BreakerOpen, NotSent, Nothing, Nothing),
            (ErrorKind::Cancelled, Unknown, Nothing, Nothing),
            (ErrorKind::DeadlineExceeded, Unknown, Nothing, Nothing),
            (ErrorKind::Internal, Unknown, Nothing, Nothing),
            (ErrorKind::NoEligibleServer, NotSent, Nothing, Nothing),
            (ErrorKind::OutcomeUnknown, Unknown, Nothing, Nothing),
            (ErrorKind::Overloaded, NotSent, Nothing, Nothing),
        ];
        for (kind, delivery, of_tool, of_way) in cases {
            let error = ToolError::new(kind, delivery, "x");
            let found = (judge_error(&error), judge_error_of_transport(&error));
            assert_eq!(found, (of_tool, of_way), "{kind}, {delivery}");
        }
    }
}
