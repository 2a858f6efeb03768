//! How a span says that something went wrong.

use tollgate_core::ToolError;
use tracing::Span;

use crate::error_type::Ending;
use crate::names;

/// Writes how a call ended that somebody else asked for. What is the caller's own fault is no error of
/// ours.
pub(crate) fn of_server(span: &Span, ending: Ending<'_>) {
    let code = ending.error().map(ToolError::rpc_code);
    if let Some(code) = code {
        write_code(span, code);
    }
    if !code.is_some_and(is_the_caller_s_fault) {
        of_client(span, ending);
    }
}

/// Writes how something ended that we asked for, or that is our own: there every failure is an error.
pub(crate) fn of_client(span: &Span, ending: Ending<'_>) {
    if let Some(error_type) = ending.error_type() {
        span.record(names::ERROR_TYPE, &*error_type);
        span.record(names::OTEL_STATUS, names::STATUS_ERROR);
    }
}

/// Writes the code that a server answered with, if it is one of JSON-RPC.
pub(crate) fn answered_with(span: &Span, ending: Ending<'_>) {
    let code = ending.error().and_then(ToolError::code);
    if let Some(code) = code.filter(|code| *code < 0) {
        write_code(span, code);
    }
}

fn write_code(span: &Span, code: i64) {
    // the conventions have it as a text
    span.record(names::STATUS_CODE, tracing::field::display(code));
}

/// The codes that the conventions count as the caller's fault: JSON-RPC 2.0 section 5.1, and MCP's
/// "resource not found".
const fn is_the_caller_s_fault(code: i64) -> bool {
    matches!(code, -32700 | -32600 | -32601 | -32602 | -32002)
}
