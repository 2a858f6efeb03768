//! The value of `error.type`: one word of a bounded set.

use callward_core::{ErrorKind, ToolError, ToolOutput};

use crate::names;

/// How an observed call or attempt ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending<'a> {
    /// Dropped before its end.
    Cancelled,
    /// Answered or failed.
    Done(&'a Result<ToolOutput, ToolError>),
}

impl<'a> Ending<'a> {
    pub(crate) fn result(self) -> Option<&'a Result<ToolOutput, ToolError>> {
        match self {
            Self::Done(result) => Some(result),
            Self::Cancelled => None,
        }
    }

    pub(crate) fn error(self) -> Option<&'a ToolError> {
        match self {
            Self::Done(Err(error)) => Some(error),
            Self::Done(Ok(_)) | Self::Cancelled => None,
        }
    }

    /// Returns the value of `error.type`, or `None` without an error.
    pub(crate) fn error_type(self) -> Option<&'static str> {
        match self {
            Self::Cancelled => Some(ErrorKind::Cancelled.as_str()),
            Self::Done(Ok(output)) => output.is_error().then_some(names::ERROR_TOOL),
            Self::Done(Err(error)) => Some(error_type(error)),
        }
    }
}

/// Returns the value of `error.type` for an error.
pub(crate) fn error_type(error: &ToolError) -> &'static str {
    let word = error.code().and_then(code_word);
    word.unwrap_or_else(|| error.kind().as_str())
}

/// Returns the word of a well-known code. A server may answer with any number, and each would
/// become a time series; even the reserved ranges have more than a thousand.
pub(crate) fn code_word(code: i64) -> Option<&'static str> {
    /// The word of each of these codes is its text.
    macro_rules! words {
        ($($code:literal)*) => {
            match code {
                $($code => Some(stringify!($code)),)*
                _ => None,
            }
        };
    }
    words! {
        // JSON-RPC 2.0 section 5.1, and MCP
        -32700 -32603 -32602 -32601 -32600
        -32042 -32022 -32021 -32020 -32004 -32003 -32002 -32001 -32000
        // HTTP, where they are about the request or the server (RFC 9110, RFC 6585)
        400 401 402 403 404 405 406 408 409 410 413 415 422 429 500 501 502 503 504
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use callward_core::Delivery;

    fn fault(code: i64) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "fault").with_code(code))
    }

    #[test]
    fn the_error_type_is_one_word_of_a_bounded_set() {
        let timeout = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "slow");
        let cases = [
            (Ok(ToolOutput::text("fine")), None),
            (Ok(ToolOutput::error_text("no")), Some("tool_error")),
            (fault(-32603), Some("-32603")),
            (fault(503), Some("503")),
            (fault(7), Some("server_fault")),
            (fault(-32_500), Some("server_fault")),
            (fault(i64::MIN), Some("server_fault")),
            (Err(timeout), Some("timeout")),
        ];
        for (result, word) in &cases {
            assert_eq!(Ending::Done(result).error_type(), *word);
        }
        assert_eq!(Ending::Cancelled.error_type(), Some("cancelled"));
    }

    #[test]
    fn servers_cannot_invent_error_types() {
        let words: HashSet<_> = (-40_000..40_000)
            .filter_map(|code| Ending::Done(&fault(code)).error_type())
            .collect();
        // the codes, and the kind for all others
        assert_eq!(words.len(), 33 + 1);
        let is_code = |word: &&str| word.parse::<i64>().is_ok();
        assert_eq!(words.iter().filter(|word| is_code(word)).count(), 33);
    }
}
