//! The fields of a span that report an error.

use callward_core::ToolError;
use tracing::field::{DisplayValue, display};

use crate::error_type::Ending;
use crate::names;

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

/// Returns the status of a request that this process served. The caller's own fault is not an
/// error.
pub(crate) fn of_server(ending: Ending<'_>) -> Status {
    let code = ending.error().map(ToolError::rpc_code);
    let failure = match code {
        Some(code) if is_callers_fault(code) => Status::default(),
        _ => of_client(ending),
    };
    Status {
        code: code.map(display),
        ..failure
    }
}

/// Returns the status of a call from within this process: every failure is an error.
pub(crate) fn of_client(ending: Ending<'_>) -> Status {
    let error_type = ending.error_type();
    Status {
        code: None,
        error_type,
        status: error_type.map(|_| names::STATUS_ERROR),
    }
}

/// Returns the status of a request to a server, with the JSON-RPC code that the server answered
/// with.
pub(crate) fn of_request(ending: Ending<'_>) -> Status {
    let code = ending.error().and_then(ToolError::code);
    Status {
        code: code.filter(|code| *code < 0).map(display),
        ..of_client(ending)
    }
}

/// Returns `true` for codes that are the caller's fault by the conventions: JSON-RPC 2.0 section
/// 5.1, and MCP's "resource not found".
const fn is_callers_fault(code: i64) -> bool {
    matches!(code, -32700 | -32600 | -32601 | -32602 | -32002)
}
