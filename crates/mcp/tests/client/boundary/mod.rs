//! Servers that fail at every byte of an exchange, and what is said of the calls it happens to.
//!
//! The servers count what they could have run with readers of their own, as eager as a server can
//! be: a call counts as run with the last bracket of it.
//!
//! Certainty over a pipe: a call is `NotSent` as long as the pipe has not taken its last bracket.
//! Certainty over HTTP: a request below some hundred kilobytes is handed to the system in one
//! piece, so a connection that ends in the middle of it looks as if all was sent, and the call is
//! `Unknown` at every byte; a larger one is `NotSent` while its last byte was not asked for.

mod child;
mod http_answers;
mod http_requests;
mod pipe;
pub(crate) mod socket;

use callward_core::{Delivery, ToolError, ToolOutput};

/// How a call ended.
pub(crate) type Ended = Result<ToolOutput, ToolError>;

/// Returns where the first JSON object in `bytes` ends, if it does.
pub(crate) fn object_end(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Holds a call to what the server did: what was run may not be called unsent, and there is no
/// success without a run.
pub(crate) fn assert_told_the_truth(ended: &Ended, executions: usize, at: &str) {
    assert!(executions <= 1, "{at}: run {executions} times");
    match ended {
        Ok(_) => assert_eq!(executions, 1, "{at}: a success without an execution"),
        Err(error) => {
            if error.delivery() == Delivery::NotSent {
                assert_eq!(executions, 0, "{at}: {error}");
            }
        }
    }
}

pub(crate) fn delivery(ended: &Ended) -> Option<Delivery> {
    ended.as_ref().err().map(ToolError::delivery)
}
