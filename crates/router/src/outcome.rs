//! How a call at a server ended.

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};

/// How a call that was given to a server ended, as its statistics count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server answered, whatever it said: a tool's own failure is an answer, and so is an error
    /// that blames the caller.
    Answered,
    /// The server answered, and asked the client meanwhile: how long that took says nothing of it.
    Asked,
    /// Its caller gave it up: dropped, or out of time for a reason that is not the server's.
    Cancelled,
    /// The server failed: unreachable, lost on the way, too slow, or broken.
    Fault,
    /// It was not taken: refused by a gate of our own (breaker, queue, rate) with nothing sent, or
    /// by the server, which asked to come later.
    Refused,
}

impl Outcome {
    /// Returns how a call ended by what came of it.
    pub(crate) fn of(result: &Result<ToolOutput, ToolError>) -> Self {
        let Err(error) = result else {
            return Self::Answered;
        };
        match (error.kind, error.delivery) {
            // first of all: a server that cannot be reached was sent nothing either
            (kind, _) if kind.blames_server() => Self::Fault,
            (ErrorKind::RateLimited, _) | (_, Delivery::NotSent) => Self::Refused,
            (_, Delivery::Answered) => Self::Answered,
            (_, Delivery::Unknown) => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table() {
        use Delivery::{Answered, NotSent, Unknown};
        let cases = [
            (ErrorKind::ConnectFailed, NotSent, Outcome::Fault),
            (ErrorKind::ConnectionLost, Unknown, Outcome::Fault),
            (ErrorKind::ServerFault, Answered, Outcome::Fault),
            (ErrorKind::Protocol, Answered, Outcome::Fault),
            (ErrorKind::Timeout, Unknown, Outcome::Fault),
            (ErrorKind::InvalidCall, Answered, Outcome::Answered),
            (ErrorKind::RateLimited, Answered, Outcome::Refused),
            (ErrorKind::RateLimited, NotSent, Outcome::Refused),
            (ErrorKind::BreakerOpen, NotSent, Outcome::Refused),
            (ErrorKind::Overloaded, NotSent, Outcome::Refused),
            (ErrorKind::DeadlineExceeded, NotSent, Outcome::Refused),
            (ErrorKind::DeadlineExceeded, Unknown, Outcome::Cancelled),
            (ErrorKind::Cancelled, Unknown, Outcome::Cancelled),
        ];
        for (kind, delivery, expected) in cases {
            let result = Err(ToolError::new(kind, delivery, "x"));
            assert_eq!(Outcome::of(&result), expected, "{kind}, {delivery}");
        }
        for answer in [ToolOutput::text("x"), ToolOutput::error_text("x")] {
            assert_eq!(Outcome::of(&Ok(answer)), Outcome::Answered);
        }
    }
}
