//! How a span says that something went wrong.

use callward_core::ToolError;
use tracing::field::{DisplayValue, display};

use crate::error_type::Ending;
use crate::names;

/// What is written into a span of how something ended. A field that is `None` is left empty.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// [`names::STATUS_CODE`]: the conventions have it as a text.
    pub(crate) code: Option<DisplayValue<i64>>,
    /// [`names::ERROR_TYPE`].
    pub(crate) error_type: Option<&'static str>,
    /// [`names::OTEL_STATUS`].
    pub(crate) status: Option<&'static str>,
}

/// Says how a call ended that somebody else asked for. What is the caller's own fault is no error of
/// ours.
pub(crate) fn of_server(ending: Ending<'_>) -> Status {
    let code = ending.error().map(ToolError::rpc_code);
    let failure = match code {
        Some(code) if is_the_caller_s_fault(code) => Status::default(),
        _ => of_client(ending),
    };
    Status {
        code: code.map(display),
        ..failure
    }
}

/// Says how something ended that is our own: there every failure is an error.
pub(crate) fn of_client(ending: Ending<'_>) -> Status {
    let error_type = ending.error_type();
    Status {
        code: None,
        error_type,
        status: error_type.map(|_| names::STATUS_ERROR),
    }
}

/// Says how something ended that we asked for, with the code that a server answered with, if it is one
/// of JSON-RPC.
pub(crate) fn of_request(ending: Ending<'_>) -> Status {
    let code = ending.error().and_then(ToolError::code);
    Status {
        code: code.filter(|code| *code < 0).map(display),
        ..of_client(ending)
    }
}

/// The codes that the conventions count as the caller's fault: JSON-RPC 2.0 section 5.1, and MCP's
/// "resource not found".
const fn is_the_caller_s_fault(code: i64) -> bool {
    matches!(code, -32700 | -32600 | -32601 | -32602 | -32002)
}
