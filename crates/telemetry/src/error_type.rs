//! What a span and its metrics say of an error: `error.type` is one word of a bounded set.

use callward_core::{ErrorKind, ToolError, ToolOutput};
use tracing::field::{DisplayValue, display};

use crate::names;

/// How an observed call or attempt ended; `None` if it was dropped before its end.
pub(crate) type Ending<'a> = Option<&'a Result<ToolOutput, ToolError>>;

/// Returns the error of a failed call or attempt.
pub(crate) fn error(ending: Ending<'_>) -> Option<&ToolError> {
    ending?.as_ref().err()
}

/// Returns the value of `error.type`, or `None` without an error.
pub(crate) fn of_ending(ending: Ending<'_>) -> Option<&'static str> {
    match ending {
        None => Some(ErrorKind::Cancelled.as_str()),
        Some(Ok(output)) => output.is_error().then_some(names::ERROR_TOOL),
        Some(Err(error)) => Some(error_type(error)),
    }
}

/// Returns the value of `error.type` for an error.
pub(crate) fn error_type(error: &ToolError) -> &'static str {
    let word = error.code.and_then(code_word);
    word.unwrap_or_else(|| error.kind.as_str())
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

/// The error fields of a span. `None` leaves a field empty.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// [`names::STATUS_CODE`]: a string in the conventions.
    pub(crate) code: Option<DisplayValue<i64>>,
    /// [`names::ERROR_TYPE`].
    pub(crate) error_type: Option<&'static str>,
    /// [`names::OTEL_STATUS`].
    pub(crate) status: Option<&'static str>,
}

impl Status {
    fn new(code: Option<i64>, error_type: Option<&'static str>) -> Self {
        Self {
            code: code.map(display),
            error_type,
            status: error_type.map(|_| names::STATUS_ERROR),
        }
    }

    /// Returns the status of a request that this process served. The caller's own fault is not an
    /// error.
    pub(crate) fn of_server(ending: Ending<'_>) -> Self {
        let code = error(ending).map(ToolError::rpc_code);
        let is_ours = !code.is_some_and(is_callers_fault);
        Self::new(code, of_ending(ending).filter(|_| is_ours))
    }

    /// Returns the status of a call from within this process: every failure is an error.
    pub(crate) fn of_client(ending: Ending<'_>) -> Self {
        Self::new(None, of_ending(ending))
    }

    /// Returns the status of a request to a server, with the JSON-RPC code that the server answered
    /// with.
    pub(crate) fn of_request(ending: Ending<'_>) -> Self {
        let code = error(ending).and_then(|error| error.reported_code());
        Self::new(code, of_ending(ending))
    }
}

/// Returns `true` for codes that are the caller's fault by the conventions: JSON-RPC 2.0 section
/// 5.1, and MCP's "resource not found".
const fn is_callers_fault(code: i64) -> bool {
    matches!(code, -32700 | -32600 | -32601 | -32602 | -32002)
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
            assert_eq!(of_ending(Some(result)), *word);
        }
        assert_eq!(of_ending(None), Some("cancelled"));
    }

    #[test]
    fn servers_cannot_invent_error_types() {
        let words: HashSet<_> = (-40_000..40_000)
            .filter_map(|code| of_ending(Some(&fault(code))))
            .collect();
        // the codes, and the kind for all others
        assert_eq!(words.len(), 33 + 1);
        let is_code = |word: &&str| word.parse::<i64>().is_ok();
        assert_eq!(words.iter().filter(|word| is_code(word)).count(), 33);
    }
}
