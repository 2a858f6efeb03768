//! One bounded word for what went wrong.

use std::borrow::Cow;

use tollgate_core::{ErrorKind, ToolError, ToolOutput};

use crate::names;

/// What an observed call or attempt came to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending<'a> {
    /// Dropped before its end.
    Cancelled,
    /// Came to an end.
    Done(&'a Result<ToolOutput, ToolError>),
}

impl<'a> Ending<'a> {
    pub(crate) fn error(self) -> Option<&'a ToolError> {
        match self {
            Self::Done(Err(error)) => Some(error),
            Self::Done(Ok(_)) | Self::Cancelled => None,
        }
    }

    /// Returns the value of `error.type`, or `None` where nothing went wrong.
    pub(crate) fn error_type(self) -> Option<Cow<'static, str>> {
        match self {
            Self::Cancelled => Some(ErrorKind::Cancelled.as_str().into()),
            Self::Done(Ok(output)) => output.is_error().then(|| names::ERROR_TOOL.into()),
            Self::Done(Err(error)) => Some(match error.code() {
                Some(code) if is_well_known(code) => code.to_string().into(),
                _ => error.kind().as_str().into(),
            }),
        }
    }
}

/// Says whether a code is in a range that some specification reserves. A server may answer with
/// any other number, and each would become a time series of its own.
fn is_well_known(code: i64) -> bool {
    // JSON-RPC 2.0 section 5.1, and HTTP status codes
    (-32768..=-32000).contains(&code) || (100..600).contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Delivery;

    #[test]
    fn the_error_type_is_one_word_of_a_bounded_set() {
        let fault = |code| {
            Err(ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "fault").with_code(code))
        };
        let timeout = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "slow");
        let cases = [
            (Ok(ToolOutput::text("fine")), None),
            (Ok(ToolOutput::error_text("no")), Some("tool_error")),
            (fault(-32603), Some("-32603")),
            (fault(503), Some("503")),
            (fault(7), Some("server_fault")),
            (fault(i64::MIN), Some("server_fault")),
            (Err(timeout), Some("timeout")),
        ];
        for (result, word) in &cases {
            assert_eq!(Ending::Done(result).error_type().as_deref(), *word);
        }
        assert_eq!(Ending::Cancelled.error_type().as_deref(), Some("cancelled"));
    }
}
